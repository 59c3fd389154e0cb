import { escapeHtml, type Markup, writeHtml } from "./markup.js";
import { reportStyle } from "./report-style.js";

/** Returns a report as one file, without scripts and without network resources. */
export function reportPage(
  { title, heading }: { readonly title: string; readonly heading: string },
  report: readonly Markup[],
): string {
  const policy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
  return [
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeHtml(title)}</title>\n<style>${reportStyle}</style>\n</head>\n<body>`,
    `<h1>${escapeHtml(heading)}</h1>${writeHtml(report)}`,
    "</body>\n</html>\n",
  ].join("\n");
}
