/** The style of the built-in page: dark and light by the visitor's settings, and narrow. */
export const pageStyle = `:root{color-scheme:light dark;--back:#f5f6f8;--card:#fff;--text:#1b1f24;
--soft:#57606a;--line:#d0d7de;--mark:#0a5cc2}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--card:#161b22;--text:#e6edf3;
--soft:#9da7b3;--line:#30363d;--mark:#6cb0ff}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;
background:var(--back);color:var(--text);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:32rem;padding:2rem;
background:var(--card);border:1px solid var(--line);border-radius:.75rem}
h1{margin:0 0 .5rem;font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere}
p{margin:0 0 1rem;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:auto 1fr;gap:.5rem 1rem;margin:1.5rem 0}
dl>div{display:contents}
p:empty,div:has(>dd:empty),dl:not(:has(dd:not(:empty))){display:none}
dt{color:var(--soft)}
dd{margin:0;font-weight:600;text-align:end;font-variant-numeric:tabular-nums}
progress{display:block;width:100%;height:.5rem;margin:0 0 1.5rem;accent-color:var(--mark)}
:root:not([data-state=waiting]) progress{display:none}
small{display:block;color:var(--soft);font-size:.875rem}
button{margin-top:1rem;padding:.5rem 1rem;font:inherit;color:var(--text);
background:none;border:1px solid var(--soft);border-radius:.5rem;cursor:pointer}
button:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
:root:not([data-state=waiting],[data-state=preQueue],[data-state=paused]) form{display:none}
@media(max-width:24rem){main{padding:1.25rem}
dl{grid-template-columns:1fr}dd{text-align:start;margin-bottom:.5rem}}`;

/**
 * The built-in page, with texts and with the fields that a template of a policy may have.
 * `text.NAME` is a text of the page, whose own fields are filled in.
 */
export const pageTemplate = `<!doctype html>
<html lang="{{lang}}" dir="{{dir}}" data-state="{{state}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
{{refreshTag}}<title>{{title}}</title>
<style>${pageStyle}</style>
</head>
<body>
<main>
<h1 data-field="title">{{title}}</h1>
<div role="status">
<p data-field="message">{{message}}</p>
<p data-field="opens">{{opens}}</p>
<dl>
<div><dt>{{text.position}}</dt><dd data-field="position">{{position}}</dd></div>
<div><dt>{{text.ahead}}</dt><dd data-field="ahead">{{ahead}}</dd></div>
<div><dt>{{text.estimate}}</dt><dd data-field="wait">{{wait}}</dd></div>
</dl>
</div>
<progress max="100" value="{{progress}}" data-field="progress"
aria-label="{{text.estimate}}"></progress>
<small>{{refreshText}}</small>
<form method="post" action="{{endpoint}}/leave"><button>{{text.leave}}</button></form>
</main>
</body>
</html>
`;
