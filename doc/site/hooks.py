"""Draws the pictures of the pages, which are written in Mermaid, with Graphviz's dot.

The pages of the site need no script to show them. Understood is what is used: subgraphs,
nodes in [] and {}, and the arrows -->, -.-> and -- text -->. Anything else is an error.
"""

import re
import subprocess

NODE = re.compile(r'(\w+)(?:\["(.*?)"\]|\{"(.*?)"\})?')
ARROW = re.compile(r'\s*(?:-->|(-\.->)|-- "?(.*?)"? -->)\s*')


def quoted(text):
    return '"' + text.replace('"', '\\"').replace("<br/>", "\\n") + '"'


class Drawing:
    def __init__(self):
        self.lines = []

    def node(self, line, at):
        """The node at line[at:], which is drawn if it has a text."""
        found = NODE.match(line, at)
        if not found:
            raise ValueError(f"no node: {line[at:]}")
        name, box, question = found.groups()
        if box or question:
            shape = "box" if box else "diamond"
            self.lines.append(f"{name} [label={quoted(box or question)}, shape={shape}]")
        return name, found.end()

    def chain(self, line):
        name, at = self.node(line, 0)
        while at < len(line):
            arrow = ARROW.match(line, at)
            if not arrow:
                raise ValueError(f"no arrow: {line[at:]}")
            dotted, text = arrow.groups()
            other, at = self.node(line, arrow.end())
            style = "dashed" if dotted else "solid"
            self.lines.append(f"{name} -> {other} [style={style}, label={quoted(text or '')}]")
            name = other

    def add(self, line):
        group = re.fullmatch(r'subgraph (\w+) \["(.*)"\]', line)
        if group:
            self.lines.append(f"subgraph cluster_{group[1]} {{ label={quoted(group[2])}")
        elif line == "end":
            self.lines.append("}")
        elif line and line != "flowchart TD":
            self.chain(line)


def svg(mermaid):
    drawing = Drawing()
    for line in mermaid.splitlines():
        drawing.add(line.strip())
    dot = "\n".join(['digraph { graph [fontname=sans, style=rounded, color=gray]'
                     ' node [fontname=sans, fontsize=11, style="filled,rounded", fillcolor=white]'
                     ' edge [fontname=sans, fontsize=10]', *drawing.lines, "}"])
    picture = subprocess.run(["dot", "-Tsvg"], input=dot, check=True, capture_output=True,
                             text=True).stdout
    # Within a page, without the header of a file; scaled to its width, or scrolled if it is narrow.
    picture = re.sub(r'<svg width="\S+" height="\S+"',
                     '<svg style="width: 100%; min-width: 800px; height: auto"',
                     picture[picture.index("<svg"):])
    return f'<div style="overflow-x: auto">\n{picture}</div>\n'


def on_page_markdown(markdown, **_):
    return re.sub(r"^```mermaid\n(.*?)^```\n", lambda m: svg(m[1]), markdown, flags=re.M | re.S)
