/* Requests to the server. Addresses are relative to the page, so that they hold below
   a proxy's path too. */

const KEY_NAME = "vaswani-api-key";
let apiKey = readKey();

/* The failure of a request, in words for the reader. */
export class RequestError extends Error {
  /**
   * @param {string} message What is wrong.
   * @param {object} details `status` of HTTP, 0 if there was no answer; the request's
   *   `field` that is wrong; after how many seconds another try makes sense, null if
   *   the server does not say; the `answer` as it came.
   */
  constructor(message, { status = 0, field = null, retrySeconds = null, answer = null } = {}) {
    super(message);
    Object.assign(this, { status, field, retrySeconds, answer });
  }
}

/** Return the key of this tab, "" if it has none. */
export function currentKey() {
  return apiKey;
}

/** Keep a key until the tab is closed, or where nothing can be stored, until it reloads. */
export function keepKey(key) {
  apiKey = key;
  try {
    sessionStorage.setItem(KEY_NAME, key);
  } catch {
    // The browser stores nothing for this page.
  }
}

function readKey() {
  try {
    return sessionStorage.getItem(KEY_NAME) ?? "";
  } catch {
    return "";
  }
}

/** Return the address of a path of the server, with a query. */
export function addressOf(path, query = {}) {
  const url = new URL(path, document.baseURI);
  url.search = new URLSearchParams(query);
  return url.href;
}

/** Return the JSON that the server answers; `body` is sent as JSON. */
export async function requestJson(path, { body, signal } = {}) {
  const response = await send(addressOf(path), { body, signal });
  return await read(() => response.json(), signal);
}

/** Return a file of the server, for an address of `addressOf`. */
export async function requestFile(address) {
  const response = await send(address, {});
  return await read(() => response.blob());
}

/**
 * Translate one text, and hand over each sentence as it arrives.
 *
 * @returns The whole answer, as without a stream.
 */
export async function streamTranslation(body, { signal, onSentence }) {
  const response = await send(addressOf("v1/translate"), { body: { ...body, stream: true }, signal });
  const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream");
  if (!isStream) return await read(() => response.json(), signal);
  const events = eventsOf(response.body);
  for (;;) {
    const { value: event, done } = await read(() => events.next(), signal);
    if (done) throw new RequestError("The answer broke off. Please try again.");
    const data = await read(() => JSON.parse(event.data), signal);
    if (event.type === "sentence") onSentence(data);
    if (event.type === "done") return data;
    if (event.type === "error") throw errorOf(data, { status: data.status ?? 500 });
  }
}

async function send(address, { body, signal }) {
  const headers = {};
  if (currentKey()) headers.Authorization = `Bearer ${currentKey()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await read(
    () => fetch(address, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    }),
    signal,
    "The server cannot be reached. Check the connection, then try again.",
  );
  if (response.ok) return response;
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    signal?.throwIfAborted();
  }
  throw errorOf(answer, response);
}

/** Await a part of an answer; throw a failure in words, unless it was aborted. */
async function read(part, signal, message = "The answer broke off. Please try again.") {
  try {
    return await part();
  } catch {
    signal?.throwIfAborted();
    throw new RequestError(message);
  }
}

function errorOf(answer, { status, headers }) {
  const retry = Number.parseFloat(headers?.get("Retry-After") ?? "");
  return new RequestError(sentenceOf(answer?.error?.message) || usualMessage(status), {
    status,
    field: answer?.error?.field ?? null,
    retrySeconds: Number.isFinite(retry) && retry >= 0 ? retry : null,
    answer,
  });
}

/** Return the server's message as a sentence: a capital first, a full stop last. */
function sentenceOf(message) {
  if (typeof message !== "string" || !message.trim()) return "";
  const text = message.trim();
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function usualMessage(status) {
  if (status === 413) return "The text is too long for this server.";
  if (status === 429 || status === 503) return "The server is busy. Please try again later.";
  if (status === 504) return "The translation took too long. Try a shorter text.";
  return `The server could not answer (status ${status}).`;
}

/** Yield the events of a stream of server-sent events: their `type` and `data`. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let remainder = "";
  let type = "message";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // A line may end with CR, LF or both, and the two may arrive apart.
      const lines = (remainder + value).split(/\r\n|\n|\r(?!$)/);
      remainder = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { type, data: data.join("\n") };
          type = "message";
          data = [];
          continue;
        }
        const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (field === "event") type = text;
        if (field === "data") data.push(text);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
