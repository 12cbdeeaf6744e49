"""Screens of a terminal as one SVG that moves by itself, without a script: every line that was ever shown is drawn once."""

import re
from html import escape

CELL, LINE, PADDING, BAR = 8.4, 19, 14, 30
NORMAL, DIM, BACKGROUND, FRAME = "#d7dbd8", "#8b938e", "#171b19", "#2a312d"
COLOURS = {30: "#6b736e", 31: "#e5786d", 32: "#8fc16f", 33: "#d8b45a", 34: "#6ea8d8", 35: "#b794d6", 36: "#62b8ab", 37: NORMAL}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def runs(line, style):
    """Pieces of a line that look alike: column, text, style; and the style at its end, in which the next line begins."""
    column, found = 0, []
    for index, piece in enumerate(ESCAPE.split(line.rstrip())):
        if index % 2 == 1:
            style = changed(style, piece)
        elif piece:
            if piece.strip() or style.get("reverse"):
                found.append((column, piece, dict(style)))
            column += len(piece)
    return found, style


def changed(style, codes):
    style = dict(style)
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style = {}
        elif code in (1, 2, 3, 4, 7):
            style[{1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[code]] = True
        elif code == 22:
            style.pop("bold", None), style.pop("dim", None)
        elif code in (23, 24, 27):
            style.pop({23: "italic", 24: "underline", 27: "reverse"}[code], None)
        elif code in (38, 48):
            numbers = numbers[2:] if numbers[:1] == [5] else numbers[4:]
        elif code == 39:
            style.pop("colour", None)
        elif code in COLOURS or code - 60 in COLOURS:
            style["colour"] = COLOURS.get(code) or COLOURS[code - 60]
    return style


def drawn(lines):
    """Lines as SVG; each piece has its place and width, whatever font there is."""
    contents, style = [], {}
    for line in lines:
        found, style = runs(line, style)
        contents.append("".join(drawn_piece(*piece) for piece in found))
    return contents


def drawn_piece(column, text, style):
    colour = style.get("colour", DIM if style.get("dim") else NORMAL)
    column, text = column + len(text) - len(text.lstrip()), text.strip()
    if not text:
        return ""
    behind = ""
    if style.get("reverse"):
        behind = f'<rect x="{column * CELL:.1f}" y="-14" width="{len(text) * CELL:.1f}" height="{LINE}" fill="{colour}"/>'
        colour = BACKGROUND
    looks = "".join([' font-weight="bold"' if style.get("bold") else "", ' font-style="italic"' if style.get("italic") else "",
                     ' text-decoration="underline"' if style.get("underline") else ""])
    fill = "" if colour == NORMAL else f' fill="{colour}"'
    return f'{behind}<text x="{column * CELL:.1f}" textLength="{len(text) * CELL:.1f}"{fill}{looks}>{escape(text)}</text>'


def moving_svg(frames, columns, rows, title):
    """`frames`: ((lines, (cursor column, row, whether it shows)), seconds)."""
    width, height = columns * CELL + 2 * PADDING, rows * LINE + 2 * PADDING + BAR
    total = sum(seconds for _, seconds in frames)
    # When each picture of a row is shown: a row that does not change is drawn once for all the time.
    shown, cursors, at = {}, [], 0.0
    for (lines, cursor), seconds in frames:
        for row, content in enumerate(drawn(lines)):
            spans = shown.setdefault((row, content), [])
            if spans and abs(spans[-1][1] - at) < 1e-6:
                spans[-1][1] = at + seconds
            else:
                spans.append([at, at + seconds])
        cursors.append((at, cursor))
        at += seconds
    names, defs, rules, body = {}, [], [], []
    for (row, content), spans in shown.items():
        if not content:
            continue
        if content not in names:
            names[content] = f"l{len(names)}"
            defs.append(f'<g id="{names[content]}">{content}</g>')
        use = f'<use href="#{names[content]}" y="{row * LINE}"'
        if len(spans) == 1 and spans[0][0] == 0 and spans[0][1] >= total - 1e-6:
            body.append(f"{use}/>")
            continue
        name = f"r{len(rules)}"
        rules.append(f"@keyframes {name}{{{steps(spans, total)}}}.{name}{{animation-name:{name}}}")
        body.append(f'{use} class="m {name}"/>')
    places = "".join(
        f"{at / total * 100:.2f}%{{transform:translate({x * CELL:.1f}px,{y * LINE}px);opacity:{flag}}}" for at, (x, y, flag) in cursors
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" aria-label="{escape(title)}">
<style>text{{white-space:pre}}.m{{opacity:0;animation:{total:.2f}s step-end infinite}}@keyframes c{{{places}}}.c{{animation:c {total:.2f}s step-end infinite}}
{''.join(rules)}</style>
<rect width="100%" height="100%" rx="9" fill="{BACKGROUND}" stroke="{FRAME}"/>
<g fill="{FRAME}"><circle cx="20" cy="18" r="6"/><circle cx="40" cy="18" r="6"/><circle cx="60" cy="18" r="6"/></g>
<defs>{''.join(defs)}</defs>
<g transform="translate({PADDING},{PADDING + BAR + 10})" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14" fill="{NORMAL}">
<rect class="c" y="-13" width="{CELL}" height="17" fill="{DIM}" fill-opacity=".6"/>
{''.join(body)}
</g></svg>
"""


def steps(spans, total):
    """When something is there, as key frames that jump."""
    marks = {}
    if spans[0][0] > 0:
        marks[0.0] = 0
    for begin, end in spans:
        marks[begin / total * 100] = 1
        marks[end / total * 100] = 0
    if spans[-1][1] >= total - 1e-6:
        marks.pop(spans[-1][1] / total * 100, None)
    return "".join(f"{at:.2f}%{{opacity:{on}}}" for at, on in sorted(marks.items()))
