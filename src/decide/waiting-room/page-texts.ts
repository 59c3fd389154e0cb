import type { PageText } from "../../core/waiting-room/page-fields.js";

/** The texts of the built-in page, in English. */
export const englishTexts: Readonly<Record<PageText, string>> = {
  waitingTitle: "You are in line",
  waiting: "Many people want to come in right now. Keep this page open: you keep your place.",
  preQueueTitle: "Almost there",
  preQueue: "You are early. Keep this page open: you get your place when it starts.",
  pausedTitle: "A short break",
  paused: "Nobody is let in right now. Keep this page open: you keep your place.",
  fullTitle: "Too many people are waiting",
  full: "We cannot take more people right now. Please try again in a few minutes.",
  unavailableTitle: "One moment",
  unavailable: "We cannot look up your place right now. This page keeps trying.",
  enteredTitle: "It is your turn",
  entered: "You can go in now. Go back, and send your form again.",
  leftTitle: "You have left the line",
  left: "Load the page again to get a new place at the end of the line.",
  notSent: "What you sent was not delivered. Send it again when it is your turn.",
  position: "Your place",
  ahead: "People ahead of you",
  estimate: "Expected wait",
  estimateUnknown: "not known yet",
  confidence: "({{confidence}} sure)",
  opens: "Starts in {{opensIn}}.",
  refresh: "This page updates itself every {{refreshSeconds}} seconds.",
  leave: "Leave the line",
};
