"""Fifty lines of text as people write it, in ten scripts and more."""

LINES = (
    # Latin: white space, marks, quotes, letters in parts.
    "Wed,\tAug 19,\t1:20\u202fAM",
    "Il a dit\u00a0: «\u202fvoilà\u202f!\u00a0»",
    "\ufeffThe first line of a file.",
    "na\u0131\u0308ve cafe\u0301, U\u0308bergro\u0308\u00dfe",
    "ﬁnal oﬃce \u2126 \u212b",
    "soft\u00adhy\u00adphens and zero\u200bwidth",
    "Ｆｕｌｌ　ｗｉｄｔｈ　２０２４！",
    "𝓼𝓬𝓻𝓲𝓹𝓽 and 𝐛𝐨𝐥𝐝",
    "x\u2009=\u20093½ · 10²\u2003m",
    "O\u2019Neil said: \u201cit\u2019s 5\u2010fold\u201d",
    "a  b   c    d ",
    "   leading, and trailing\t",
    "line\u2028separator and\u2029paragraph\x85next",
    "tab\x0bfeed\x0cfile\x1cgroup\x1drecord\x1eunit\x1fend",
    "bell\x07 null\x00 escape\x1b[31m",
    # What looks like ours.
    "</s> <s> <pad> <unk> <0x41> \u2581word \u2047",
    "<2de> [NUM1] __URL__ {placeholder} %s $1 >>fra<<",
    "https://example.org/?q=a&b=%20#x me@example.org",
    'if (a < b && c > d) { return "\\n"; }',
    # Emoji, alone and joined.
    "3 hours ago \U0001f600 and more",
    "\U0001f469\u200d\U0001f52c\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "\U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd 1\ufe0f\u20e3",
    # Greek and Cyrillic.
    "Τι κάνεις; Καλά\u00b7 εσύ;",
    "\u1f08\u03c1\u03c7\u1f74 \u03bc\u03ac\u03c4\u03b9 µ",
    "Ещё\u00a0—\u00a0«да», и\u0306 не й",
    "ЅСАМ in Cyrillic letters",
    # Hebrew and Arabic: directions, vowels, presentation forms.
    "\u200fשָׁלוֹם\u200e (hello) \u202b123\u202c",
    "السَّلَامُ عَلَيْكُمْ، كيف الحال؟",
    "\ufefb \ufedf\ufe8e \ufdfa",
    "می\u200cخواهم به خانه\u200cها بروم",
    "۱۲۳ ٤٥٦ ۔",
    # Indic scripts: joiners, signs in two orders.
    "क\u094d\u200dष क\u094d\u200cष क्षत्रिय।",
    "हिन्दी में १२३ रुपये॥",
    "বাংলা \u09c7\u09be \u09cb",
    "தமிழ் \u0bc6\u0bbe க\u0bca",
    # Thai, Khmer, Burmese: no spaces.
    "สวัสดีครับ\u200bวันนี้อากาศดี",
    "น้ำ กํา",
    "សួស្តី\u200bពិភពលោក។",
    "မင်္ဂလာပါ။",
    # Chinese, Japanese, Korean.
    "这只房子很绿，号码是20。我们走吧！",
    "全角，（括号）　和ＡＢＣ",
    "\U00020000\U0002a6d6 \uf900 ⼀",
    "ｶﾞｷﾞ ガギ カ\u3099 「はい。」",
    "㈱東京 ㎏ ① Ⅳ 〜 ～",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 한글 ㄱㄴ",
    # Georgian, Armenian, Ethiopic, Tibetan.
    "გამარჯობა Ⴀ, Բարեւ և",
    "ሰላም፡ለዓለም።",
    "བོད་ཡིག།",
    # Nothing, and too much.
    "\u3000\u00a0\u2003",
    "word" * 60 + " " + "漢" * 40 + "!",
)
