import { adminApiPages } from "./admin-api-page.js";
import { cliPages } from "./cli-page.js";
import { differencesPage } from "./differences-page.js";
import { errorsPage } from "./errors-page.js";
import { libraryMetricsPage } from "./library-metrics-page.js";
import type { ReferencePage } from "./markdown.js";
import { metricsPage } from "./metrics-page.js";
import { policyPages } from "./policy-pages.js";
import { problemsPage } from "./problems-page.js";
import { scenarioPages } from "./scenario-page.js";
import { settingsPage } from "./settings-page.js";
import { targetsPage } from "./targets-page.js";

/** Every page of docs/reference. */
export async function referencePages(): Promise<readonly ReferencePage[]> {
  const pages = [
    ...policyPages,
    ...scenarioPages,
    targetsPage(),
    settingsPage(),
    ...(await cliPages()),
    metricsPage(),
    libraryMetricsPage(),
    problemsPage(),
    errorsPage(),
    ...adminApiPages(),
    differencesPage(),
  ];
  return [indexPage(pages), ...pages];
}

function indexPage(pages: readonly ReferencePage[]): ReferencePage {
  const shown = pages.filter(({ path }) => !path.includes("/"));
  const lines = shown.map(({ path, title, purpose }) => `- [${title}](${path}): ${purpose}`);
  return {
    path: "README.md",
    title: "Reference",
    purpose: "This page lists the reference pages. They are generated from the code.",
    body: lines.join("\n"),
  };
}
