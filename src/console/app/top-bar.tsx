import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { showText } from "../data/entries.js";
import { formatClock, formatSpan } from "../data/format.js";
import { ToneIcon } from "../parts/status.jsx";
import { connection } from "../state/api.js";
import { later, nowMs } from "../state/browser.js";
import { refreshSession, signOut, user } from "../state/session.js";
import { nextTheme, theme } from "../state/theme.js";
import { openBox } from "./keyboard.js";

/** What stands above each view: search, who is signed in, and whether the server answers. */
export function TopBar() {
  const known = user.value;
  const role = known?.isReadOnly === true ? "read-only" : (known?.role ?? "");
  return (
    <header class="top-bar">
      <button type="button" class="search" onClick={() => (openBox.value = "search")}>
        Search <kbd>/</kbd>
      </button>
      <LostConnection />
      <span class="spring" />
      <button type="button" onClick={nextTheme} aria-label={`Colors: ${theme.value}`}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <path
            fill="currentColor"
            d="M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.5v11a5.5 5.5 0 0 1 0-11Z"
          />
        </svg>
        <span class="wide-only">{theme.value}</span>
      </button>
      {known === undefined ? undefined : (
        <span class="who" title={`Signed in to ${known.replica}, version ${known.version}`}>
          <b>{showText(known.name)}</b> <span class="muted">{role}</span>
        </span>
      )}
      {known !== undefined && known.csrf !== "" && known.ways.length > 0 ? (
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      ) : undefined}
    </header>
  );
}

/** A lost connection, and for how long. */
function LostConnection() {
  const { lostAtMs } = connection.value;
  const tick = useSignal(0);
  useEffect(() => {
    if (lostAtMs === undefined) {
      // The other replica of the address may know another session.
      if (tick.peek() > 0) void refreshSession();
      return undefined;
    }
    return later(1_000, () => {
      tick.value += 1;
    });
  }, [lostAtMs, tick.value]);
  if (lostAtMs === undefined) return undefined;
  return (
    <span class="badge bad" role="alert">
      <ToneIcon tone="bad" />
      No answer since {formatClock(lostAtMs)} UTC ({formatSpan(Math.max(1_000, nowMs() - lostAtMs))}
      )
    </span>
  );
}
