"use strict";

/* What each head does over a text, measured when the page was made. */

/** Return what a head of the last model does, empty if nothing is known. */
function rolesOf(kind, layer, head) {
  const known = headRecord(kind, layer, head);
  return known ? known.roles.join(", ") || "no clear role" : "";
}

/** Return what was measured of a head, undefined if nothing was. */
function headRecord(kind, layer, head) {
  return PAGE.heads?.heads.find(
    (record) => record.kind === kind && record.layer === layer && record.head === head,
  );
}

function drawRoles() {}
