"""A test script of core's, split into statements by psql, and its tables made temporary."""

import functools
import re
import subprocess
import tempfile

# Permanent tables of a script that become temporary: those whose name has no schema.
CREATE_TABLE = re.compile(
    r"\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?!IF\s|AS\s)(?=[\w\"]+\s*(?:[(;]|\s\w))"
    r"|\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?=IF\s+NOT\s+EXISTS\s+[\w\"]+\s*[(\s])", re.I)
INTO_TABLE = re.compile(r"\bINTO\s+(?:UNLOGGED\s+)?TABLE\s+(?=[\w\"]+[\s;])", re.I)

# Settings that the mode determines.
OWN_SETTINGS = re.compile(
    r"\s*(?:SET|RESET)\s+(?:LOCAL\s+|SESSION\s+)?"
    r"(?:max_parallel_workers(?:_per_gather)?|parallel_(?:setup|tuple)_cost|temp_buffers"
    r"|min_parallel_(?:table|index)_scan_size|force_parallel_mode|debug_parallel_query)\b", re.I)

# Just enough to find comments and brackets that are not quoted.
TOKEN = re.compile(r"""
      (?P<comment> --[^\n]* )
    | (?P<escaped> [eE]'(?:[^'\\]|\\.|'')*' )
    | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<word> [A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]* )
    | (?P<command> \\[^;\n][^\n]* )
    | (?P<bracket> [()] )
    """, re.X | re.S)
SENDS = re.compile(r"\\(?:g|gx|gset|gexec|gdesc|crosstabview|watch)\b")
READS_DATA = re.compile(r"\s*\\?COPY\b.*\bFROM\s+STDIN\b", re.I | re.S)

# Lines of a script. CONNECT is left out; COPY_LINE may be followed by data, NO_DATA is not
# data; a query that is sent at a LAST_LINE ends there, so that the next one begins on
# another line.
CONNECT = re.compile(r"\\(?:c|connect)\b")
CONDITION = re.compile(r"\\(?:if|elif|else|endif)\b")
COPY_LINE = re.compile(r"[^'-]*\bFROM\s+STDIN\b.*", re.I)
NO_DATA = re.compile(r"\s*(?:--|\\?COPY\b)", re.I)
LAST_LINE = re.compile(r";\s*(?:--.*|/\*.*\*/\s*)?$|" + SENDS.pattern)

# Lines of psql's output: around a query that it shows in single-step mode, and numbers.
QUERY_BEGINS = re.compile(rb".{3}\(Single step mode: ")
QUERY_ENDS = re.compile(rb".{3}\(press return to proceed ")
LINE_NUMBER = re.compile(rb"--@@(\d+)$")
# The only setting that changes how psql splits.
LEXICAL = re.compile(rb"(?:\s|--.*\n)*SET\s+standard_conforming_strings\b", re.I)


class Statement:
    """A statement, with the data that it copies, or a psql command."""

    def __init__(self, text):
        self.text = text
        self.bare = strip_comments(text)
        self.words = " ".join(self.bare.split())        # for open_answers.txt
        # The ORDER BY and LIMIT of the query itself are outside of all brackets.
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


def cut_data(lines):
    """The lines without the data of COPY, and the data by the number of the line before it."""
    out, data, number = [], {}, 0
    while number < len(lines):
        out.append(lines[number])
        number += 1
        if COPY_LINE.match(out[-1]):
            # A COPY that fails has no data, and is followed by other statements.
            end = number
            while end < len(lines) and lines[end].rstrip() != "\\." and not NO_DATA.match(lines[end]):
                end += 1
            if end < len(lines) and lines[end].rstrip() == "\\.":
                data[len(out) - 1] = "".join(lines[number:end + 1])
                number = end + 1
    return out, data


def sending_lines(psql, lines):
    """The numbers of the lines at which psql sends a query.

    In single-step mode, psql shows each query and asks whether to send it; the answer is
    no. It also echoes the lines that it reads. A comment with its number is added after
    each line, to tell at which line a query is shown.
    """
    numbered = "".join(f"{line}--@@{n}\n" for n, line in enumerate(lines))
    with tempfile.NamedTemporaryFile() as script:
        script.write(numbered.encode("utf-8", "surrogateescape"))
        script.flush()
        with subprocess.Popen([psql, "-Xqas", "-d", "postgres", "-f", script.name], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            found, current, query = set(), 0, None
            for line in process.stdout:
                if query is None:
                    number = LINE_NUMBER.match(line)
                    if number:
                        current = int(number.group(1)) + 1
                    elif QUERY_BEGINS.match(line):
                        query = b""
                elif QUERY_ENDS.match(line):
                    found.add(current)
                    process.stdin.write(b"\n" if LEXICAL.match(query) else b"x\n")
                    process.stdin.flush()
                    query = None
                elif not LINE_NUMBER.match(line):
                    query += line
    if process.returncode == 2:
        raise RuntimeError("psql has no connection to split a script")
    return found


def statements(psql, text):
    """The statements of a script, split by psql.

    Statements on one line stay together, and so do those in a branch of \\if that psql
    skips here. They are compared as one.
    """
    lines, data = cut_data([line + "\n" for line in text.split("\n") if not CONNECT.match(line)])
    sending = sending_lines(psql, lines)
    statement = ""
    for number, line in enumerate(lines):
        command = CONDITION.match(line) or (line.startswith("\\") and not strip_comments(statement))
        statement += line
        if command or (number in sending and LAST_LINE.search(line)):
            yield statement + data.get(number, "")
            statement = ""


def temporary(text):
    """The same statement with temporary tables."""
    head, mark, data = text.partition("\n")
    if READS_DATA.match(strip_comments(head)) and mark:
        return text
    text = CREATE_TABLE.sub("CREATE TEMP TABLE ", text)
    return INTO_TABLE.sub("INTO TEMP TABLE ", text)


@functools.cache
def parse(psql, text):
    """The statements of a script that are run."""
    out = []
    for part in statements(psql, text):
        statement = Statement(temporary(part))
        if OWN_SETTINGS.match(statement.bare):
            continue
        if out and SENDS.match(statement.bare):
            # Sends the previous one again.
            statement = Statement(out.pop().text + statement.text)
        out.append(statement)
    return out
