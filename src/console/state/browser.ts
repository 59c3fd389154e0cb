/** The browser's clock, timers and devices: everything that is not a function of server data. */

/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now();
}

/** Returns a time in the form that libraries take. */
export function browserDate(ms: number): Date {
  return new Date(ms);
}

/** Calls `callback` after a delay. Returns a function that cancels it. */
export function later(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}

/** Waits. Ends early if the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = later(ms, done);
    signal.addEventListener("abort", done);
  });
}

/** Resolves once the page is visible, or the signal aborts. */
export function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}

/** Copies a text to the clipboard; false if the browser does not allow it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Lets the user save a file. */
export function saveFile(name: string, text: string, type = "text/csv"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  later(10_000, () => URL.revokeObjectURL(url));
}

/** Returns the path of a file that is loaded on demand. The page knows its hashed name. */
export function assetPath(name: string): string {
  return document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
}

/** Returns unpredictable whole numbers of 32 bits. */
export function randomWords(count: number): readonly number[] {
  return [...crypto.getRandomValues(new Int32Array(count))];
}

/** Reads a text stored in this browser; empty if there is none, or storage is not allowed. */
export function recall(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Stores a text in this browser, if it allows that. */
export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    // A browser without storage forgets the theme, and works otherwise.
  }
}
