import type { ProblemRow } from "./problem-row.js";

/** Mistakes in waiting rooms. */
export const roomProblemRows = {
  HG270: {
    title: "Two waiting rooms, or two events of one, have the same name.",
    remedy: "Give each its own name. Cookies, metrics and commands use it.",
  },
  HG271: {
    title: "A waiting room refers to a service that the policy does not define.",
    remedy: "Name a service under `services`, in this or another file of the policy.",
  },
  HG272: {
    title: "A waiting room guards no request, because an earlier one guards them all.",
    remedy: "Put the room with the narrower match first, or change one of the matches.",
  },
  HG273: {
    title: "A time cannot be parsed.",
    remedy: "Write it as RFC 3339 has it, with an offset: 2026-11-27T09:00:00Z.",
  },
  HG274: {
    title: "Two events of a waiting room overlap.",
    remedy: "Let one event, with its pre-queue, begin when the former one has ended.",
  },
  HG275: {
    title: "A template or text names a field that waiting pages do not have.",
    remedy: "Use the expected fields. Headgate has no sections, conditions or partials.",
  },
  HG276: {
    title: "A template does not tell visitors their place.",
    remedy: "Add one of the expected fields where visitors look for it.",
  },
  HG277: {
    title: "A key is not a language, or is one that is there already.",
    remedy: "Write each language once, as a BCP 47 tag: en, sv, pt-BR, zh-Hant.",
  },
  HG278: {
    title: "The endpoint of a waiting room hides a path of the service or of another room.",
    remedy: "Choose a path that nothing else uses. Headgate answers what is below it.",
  },
  HG279: {
    title: "Browsers would not keep or send the cookie of a waiting room.",
    remedy: "Change its attributes as expected. Visitors without the cookie never get in.",
  },
  HG280: {
    title: "The capacity of a waiting room is `auto`, and its service has no limit.",
    remedy: "Set `activeUsers`, or give the service `admission` or `concurrency`.",
  },
  HG281: {
    title: "Any caller can send the header that bypasses a waiting room.",
    remedy: "List values that only a few know, or let a proxy remove the header of others.",
    severity: "warning",
  },
  HG282: {
    title: "A waiting room matches a host that its service does not have.",
    remedy: "Use a host of the service, or check that routes for this host name the service.",
    severity: "warning",
  },
  HG283: {
    title: "Requests of the class that most requests have bypass a waiting room.",
    remedy: "List higher classes only, or give the service another default class.",
    severity: "warning",
  },
  HG284: {
    title: "The policy has no file of the name that a waiting room has as its `templateFile`.",
    remedy: "Put the HTML file beside the policy, pass both, or write the page as `template`.",
  },
  HG285: {
    title: "Two HTML files of a policy have the same name.",
    remedy: "Rename one of them. Waiting rooms name a file without its path.",
  },
  HG286: {
    title: "No waiting room uses an HTML file of the policy.",
    remedy: "Name it as the `templateFile` of a room's `page`, or remove it.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;
