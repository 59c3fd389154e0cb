/** Styles of drawings in a report, for any parent element and its colors. */
export const figureStyle = `
h2{margin:32px 0 12px}.dim,figcaption p{color:var(--dim);font-size:13px}
.verdict{display:inline-block;padding:2px 10px;border-radius:999px;font-weight:600;
border:1px solid currentColor}
.good{color:var(--good)}.bad{color:var(--bad)}
.figures{display:grid;gap:16px;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr))}
figure{margin:0;padding:14px;background:var(--card);border:1px solid var(--edge);border-radius:8px;
min-width:0}
svg{display:block;width:100%;height:auto}svg text{fill:var(--dim);font-size:12px}
.end{text-anchor:end}.mid{text-anchor:middle}.grid{stroke:var(--edge)}
.mark{stroke:var(--dim);stroke-dasharray:4 3}.warm{fill:var(--edge);opacity:.35}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1);stroke-width:2.5}
.s2{stroke:var(--s2);stroke-dasharray:6 3}
.s3{stroke:var(--s3);stroke-dasharray:2 3}.s4{stroke:var(--s4);stroke-dasharray:9 3 2 3}
.s5{stroke:var(--s5);stroke-dasharray:12 4}.s6{stroke:var(--s6);stroke-dasharray:4 2}
.s7{stroke:var(--s7);stroke-dasharray:1 3}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:6px 0;padding:0;
font-size:13px}
.key{display:inline-block;width:28px;height:10px;vertical-align:middle}
.scroll{overflow-x:auto}
.scroll+h3,p+h3,ul+h3,p+.scroll,.scroll+p,.scroll+.figures,p+.figures{margin-top:14px}
details{margin-top:6px}summary{cursor:pointer;font-size:13px;
color:var(--dim)}
table{width:auto;border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap}
th:first-child{text-align:left;font-weight:500}thead th{color:var(--dim);font-weight:500}
@media(max-width:600px){svg text{font-size:17px}}
`;

/** Styles of a report: light or dark as the reader's system, and readable on a phone. */
export const reportStyle = `
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#59636e;--page:#fff;--card:#f6f8fa;
--edge:#d1d9e0;--good:#1a7f37;--bad:#cf222e;--s0:#0969da;--s1:#1a7f37;--s2:#cf222e;--s3:#9a6700;
--s4:#8250df;--s5:#0f766e;--s6:#bf3989;--s7:#59636e}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--page:#0d1117;--card:#151b23;
--edge:#3d444d;--good:#3fb950;--bad:#f85149;--s0:#58a6ff;--s1:#3fb950;--s2:#f85149;--s3:#d29922;
--s4:#bc8cff;--s5:#2dd4bf;--s6:#f778ba;--s7:#9198a1}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1080px;padding:24px 16px 48px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px}h3{font-size:15px;margin:0}
p{margin:0 0 8px}
${figureStyle}@media print{details{display:none}figure{break-inside:avoid}}
`;
