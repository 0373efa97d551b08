"""How an exported session looks. One text, because the file that it goes into has to stand alone."""

from typing import Final

__all__ = ["STYLE"]

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --faint: #656d76; --line: #d8dee4; --card: #fff;
  --user: #eef4ff; --code: #f3f4f6; --added: #dafbe1; --removed: #ffebe9; --place: #ddf4ff; --link: #0550ae; --bad: #b42318;
  --warn: #8a5a00; --e0: #b4552d; --e1: #0f766e; --e2: #6d28d9; --e3: #a16207; --e4: #be185d; --e5: #1d4ed8; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e3e6ea; --faint: #9aa4b0; --line: #363c44;
  --card: #1d2025; --user: #1c2a44; --code: #272b32; --added: #12361f; --removed: #4a1d1f; --place: #172f45;
  --link: #79b8ff; --bad: #ff8f85; --warn: #e3b341; --e0: #f0a07c; --e1: #5eead4; --e2: #c4b5fd; --e3: #fcd34d;
  --e4: #f9a8d4; --e5: #93c5fd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 58rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
dl { display: flex; flex-wrap: wrap; gap: .35rem 1.75rem; margin: 0 0 2rem; font-size: .85rem; color: var(--faint); }
dt, dd { display: inline; margin: 0; } dt::after { content: " "; } dd { color: var(--ink); }
article { margin: 0 0 1.1rem; padding: .85rem 1.15rem; background: var(--card); border: 1px solid var(--line);
  border-left: 4px solid var(--who, var(--line)); border-radius: 8px; }
article.user { background: var(--user); --who: var(--link); }
.e0 { --who: var(--e0); } .e1 { --who: var(--e1); } .e2 { --who: var(--e2); } .e3 { --who: var(--e3); }
.e4 { --who: var(--e4); } .e5 { --who: var(--e5); }
h2 { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; margin: 0 0 .4rem; font-size: .95rem;
  color: var(--who, var(--ink)); }
h2 time { font-weight: 400; font-size: .8rem; color: var(--faint); white-space: nowrap; }
h3, h4, h5, h6 { margin: 1.1rem 0 .4rem; font-size: 1.05rem; }
p, ul, ol, blockquote { margin: .5rem 0; } p, li { white-space: pre-line; }
blockquote { padding-left: .9rem; border-left: 3px solid var(--line); color: var(--faint); }
ul, ol { padding-left: 1.5rem; } li ul, li ol { margin: 0; }
hr { border: 0; border-top: 1px solid var(--line); margin: 1rem 0; }
a { color: var(--link); }
code, pre, .path { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .86em; }
code { background: var(--code); padding: .1em .3em; border-radius: 4px; }
pre { margin: .5rem 0; padding: .65rem .8rem; background: var(--code); border-radius: 6px; overflow-x: auto; line-height: 1.45;
  overflow-wrap: normal; } pre code { padding: 0; background: none; font-size: 1em; }
details > pre { max-height: 28rem; overflow-y: auto; }
.call, .thought { margin: .45rem 0; font-size: .92rem; } summary { cursor: pointer; }
.call summary code, div.call > code { background: none; padding: 0; }
.call small, .thought summary, .call em { color: var(--faint); } .call .mark { color: var(--e1); }
.call.failed .mark, .call.failed em { color: var(--bad); }
.thought > .prose { margin-left: 1.1rem; color: var(--faint); font-style: italic; }
.diff { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
.diff .path { padding: .35rem .8rem; background: var(--code); color: var(--faint); }
.diff pre { margin: 0; padding: .4rem 0; background: none; border-radius: 0; max-height: 36rem; overflow: auto; }
.diff span { display: block; min-width: max-content; padding: 0 .8rem; }
.added { background: var(--added); } .removed { background: var(--removed); } .place { background: var(--place); color: var(--faint); }
aside { margin: .5rem 0; padding: .5rem .8rem; border-radius: 6px; border: 1px solid var(--line); color: var(--faint); font-size: .92rem; }
aside.error { color: var(--bad); border-color: var(--bad); } aside.warning { color: var(--warn); border-color: var(--warn); }
aside p { margin: .2rem 0 0; }
.note { color: var(--faint); font-style: italic; } .plan .completed { color: var(--faint); text-decoration: line-through; }
.plan .in_progress { font-weight: 600; }
img { display: block; max-width: 100%; height: auto; border-radius: 6px; margin: .5rem 0; }
@media print { body { max-width: none; padding: 0; } article { break-inside: avoid-page; } pre { white-space: pre-wrap; } }
"""
