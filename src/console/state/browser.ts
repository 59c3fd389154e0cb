/** The browser's clock, timers and devices: all that is not a function of what the server says. */

/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now();
}

/** A time as libraries take it. */
export function browserDate(ms: number): Date {
  return new Date(ms);
}

/** Calls back after a while; what it returns calls that off. */
export function later(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}

/** Waits; ends early when the signal does. */
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

/** Resolves once the page can be seen, or the signal ends. */
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

/** Puts a text on the clipboard; false where the browser does not let it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Gives the reader a file. */
export function saveFile(name: string, text: string, type = "text/csv"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  later(10_000, () => URL.revokeObjectURL(url));
}

/** Where a file is that the page may need later; its name has a hash, which the page knows. */
export function assetPath(name: string): string {
  return document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
}

/** Whole numbers of 32 bits that nobody can tell. */
export function randomWords(count: number): readonly number[] {
  return [...crypto.getRandomValues(new Int32Array(count))];
}

/** Reads what was kept in this browser under a name; empty where nothing is, or nothing may be. */
export function recall(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Keeps a text in this browser, if it may. */
export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    // A browser that keeps nothing forgets the theme, and works otherwise.
  }
}
