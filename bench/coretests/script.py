"""A core test script, cut into what psql sends one by one, its tables temporary."""

import re

# What the permanent tables of a script become. A name with a schema stays.
CREATE_TABLE = re.compile(
    r"\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?!IF\s|AS\s)(?=[\w\"]+\s*(?:[(;]|\s\w))"
    r"|\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?=IF\s+NOT\s+EXISTS\s+[\w\"]+\s*[(\s])", re.I)
INTO_TABLE = re.compile(r"\bINTO\s+(?:UNLOGGED\s+)?TABLE\s+(?=[\w\"]+[\s;])", re.I)

# Settings that are the mode's to make.
OWN_SETTINGS = re.compile(
    r"\s*(?:SET|RESET)\s+(?:LOCAL\s+|SESSION\s+)?"
    r"(?:max_parallel_workers(?:_per_gather)?|parallel_(?:setup|tuple)_cost|temp_buffers"
    r"|min_parallel_(?:table|index)_scan_size|force_parallel_mode|debug_parallel_query)\b", re.I)

TOKEN = re.compile(r"""
      (?P<comment> --[^\n]* )
    | (?P<block> /\* )
    | (?P<dollar> \$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$ )
    | (?P<escaped> [eE]'(?:[^'\\]|\\.|'')*' )
    | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<word> [A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]* )
    | (?P<both> \\; )
    | (?P<meta> \\[^\n]* )
    | (?P<bracket> [()] )
    | (?P<end> ; )
    """, re.X | re.S)
BLOCK_EDGE = re.compile(r"/\*|\*/")
BACKSLASH_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.S)
SENDS = re.compile(r"\\(?:g|gx|gset|gexec|gdesc|crosstabview|watch)\b")
READS_DATA = re.compile(r"\s*\\?COPY\b.*\bFROM\s+STDIN\b", re.I | re.S)
NO_BACKSLASHES = re.compile(r"\s*SET\s+standard_conforming_strings\s*(?:=|TO)\s*(\w+)", re.I)
ROUTINE = re.compile(r"create (?:or replace )?(?:function|procedure)\b")


class Statement:
    """A statement, with the data that it copies, or a command of psql's own."""

    def __init__(self, text):
        self.text = text
        self.bare = strip_comments(text)
        self.meta = self.bare.startswith("\\")
        self.words = " ".join(self.bare.split())        # to be recognized by
        # The query's own ORDER BY and LIMIT are outside of all brackets.
        outside = without_brackets(self.bare)
        self.ordered = None
        match = re.search(r"\bORDER\s+BY\s+(.*?)(?=\bLIMIT\b|\bOFFSET\b|\bFETCH\b|\bFOR\b|;|\\|$)",
                          outside, re.I | re.S)
        if match and not re.match(r"CREATE|ALTER|DECLARE|INSERT", outside, re.I):
            self.ordered = [key.split()[0].lower() if len(key.split()) == 1 or re.fullmatch(
                r"\S+(\s+(asc|desc|using\s+\S+))?(\s+nulls\s+(first|last))?", key.strip(), re.I)
                else None for key in match.group(1).split(",")]
        self.explains = re.search(r"explain", self.bare, re.I) is not None

    def is_query(self):
        return re.match(r"(SELECT|WITH|VALUES|TABLE|EXECUTE|\()", self.bare, re.I) is not None


def strip_comments(text):
    out, position = [], 0
    for match in TOKEN.finditer(text):
        if match.lastgroup == "comment" and match.start() >= position:
            out.append(text[position:match.start()])
            position = match.end()
    return re.sub(r"^\s*/\*.*?\*/", "", "".join(out) + text[position:], flags=re.S).strip()


def without_brackets(text):
    out, depth, position = [], 0, 0
    for match in TOKEN.finditer(text):
        if match.lastgroup == "bracket":
            if depth == 0:
                out.append(text[position:match.start()] + "()")
            depth += 1 if match.group() == "(" else -1
            position = match.end()
    return "".join(out) + (text[position:] if depth == 0 else "")


def statements(text):
    """The statements of a script, in the way in which psql tells them apart.

    A cut too few, where a script depends on what the server answers, makes
    two statements one: they are still compared.
    """
    start = position = depth = blocks = 0
    words = []
    backslashes = False
    while position < len(text):
        match = TOKEN.search(text, position)
        if match is None:
            break
        position, kind, token = match.end(), match.lastgroup, match.group()
        finished = False
        if kind == "block":
            level = 1
            while level:
                edge = BLOCK_EDGE.search(text, position)
                if edge is None:
                    return
                level += 1 if edge.group() == "/*" else -1
                position = edge.end()
        elif kind == "dollar":
            position = text.find(token, position)
            if position < 0:
                return
            position += len(token)
        elif kind == "quoted" and backslashes and token[0] == "'":
            position = BACKSLASH_QUOTED.match(text, match.start()).end()
        elif kind == "word":
            word = token.lower()
            if len(words) < 4:
                words.append(word)
            if ROUTINE.match(" ".join(words)) and depth == 0:
                if word == "begin" or (word == "case" and blocks):
                    blocks += 1
                elif word == "end" and blocks:
                    blocks -= 1
        elif kind == "bracket":
            depth += 1 if token == "(" else -1
        elif kind == "meta":
            finished = bool(SENDS.match(token)) or not strip_comments(text[start:match.start()])
        elif kind == "end":
            finished = depth <= 0 and blocks == 0
        if not finished:
            continue
        statement = text[start:position]
        if READS_DATA.match(strip_comments(statement)):
            data = re.compile(r"^\\\.[ \t]*(?:\n|\Z)", re.M).search(text, position)
            position = data.end() if data else position
            statement = text[start:position]
        match = NO_BACKSLASHES.match(strip_comments(statement))
        if match:
            backslashes = match.group(1).lower() == "off"
        yield statement
        start, depth, blocks, words = position, 0, 0, []


def temporary(text):
    """The same statement about temporary tables."""
    head, mark, data = text.partition("\n")
    if READS_DATA.match(strip_comments(head)) and mark:
        return text
    text = CREATE_TABLE.sub("CREATE TEMP TABLE ", text)
    return INTO_TABLE.sub("INTO TEMP TABLE ", text)


def parse(text):
    """What of a script is run."""
    out = []
    for part in statements(text):
        statement = Statement(temporary(part))
        if re.match(r"\\(c|connect)\b", statement.bare) or OWN_SETTINGS.match(statement.bare):
            continue
        if out and SENDS.match(statement.bare):
            # Sends the previous one again.
            statement = Statement(out.pop().text + statement.text)
        out.append(statement)
    return out
