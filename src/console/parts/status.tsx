import type { ComponentChildren } from "preact";
import { formatSpan } from "../data/format.js";
import { nowMs } from "../state/browser.js";
import type { Polled } from "../state/poll.js";

/** How good something is; each has a shape of its own beside its color. */
export type Tone = "good" | "notice" | "warn" | "bad" | "plain";

const shapes: Readonly<Record<Tone, string>> = {
  good: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.6 5L7.2 10.9 4.4 8.2l1-1.1 1.7 1.6 3.4-3.8Z",
  notice: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm-.8 3h1.6v1.7H7.2Zm0 3h1.6v5H7.2Z",
  warn: "M8 1 .8 14.5h14.4Zm-.8 5h1.6v4.2H7.2Zm0 5.2h1.6v1.6H7.2Z",
  bad: [
    "M5 1h6l4 4v6l-4 4H5l-4-4V5Z",
    "m-.2 4.9L6.9 8l-2.1 2.1 1.1 1.1L8 9.1l2.1 2.1 1.1-1.1L9.1 8l2.1-2.1-1.1-1.1L8 6.9 5.9 4.8Z",
  ].join(""),
  plain: "M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z",
};

/** A sign of its tone; what it means stands beside it as text. */
export function ToneIcon({ tone }: { readonly tone: Tone }) {
  return (
    <svg class={`tone-icon ${tone}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path fill="currentColor" fill-rule="evenodd" d={shapes[tone]} />
    </svg>
  );
}

/** A word with its tone. */
export function Badge({
  tone,
  children,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`}>
      <ToneIcon tone={tone} />
      {children}
    </span>
  );
}

/** A number with its name, to be read from afar. */
export function Tile({
  label,
  value,
  detail,
  tone = "plain",
  href,
}: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly detail?: ComponentChildren;
  readonly tone?: Tone;
  readonly href?: string;
}) {
  const content = (
    <>
      <span class="tile-label">
        {tone === "plain" || tone === "good" ? undefined : <ToneIcon tone={tone} />}
        {label}
      </span>
      <span class="tile-value">{value}</span>
      <span class="tile-detail">{detail ?? " "}</span>
    </>
  );
  return href === undefined ? (
    <div class={`tile ${tone}`}>{content}</div>
  ) : (
    <a class={`tile ${tone}`} href={href}>
      {content}
    </a>
  );
}

/** Shows an answer once there is one; before that, that it is awaited, or why it is missing. */
export function PolledAnswer<T>({
  polled,
  children,
  isAsked = true,
}: {
  readonly polled: Polled<T>;
  /** False: nothing is asked for yet, and nothing shown. */
  readonly isAsked?: boolean;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, error, atMs } = polled;
  if (!isAsked) return undefined;
  if (data === undefined) {
    return error === undefined ? (
      <p class="empty" role="status">
        Asking Headgate …
      </p>
    ) : (
      <p class="notice bad" role="alert">
        <ToneIcon tone="bad" /> {sentenceOf(error)} It is tried again.
      </p>
    );
  }
  return (
    <>
      {error === undefined ? undefined : (
        <p class="notice warn" role="status">
          <ToneIcon tone="warn" /> {sentenceOf(error)} What you see is from{" "}
          {formatSpan(nowMs() - atMs)} ago.
        </p>
      )}
      {children(data)}
    </>
  );
}

function sentenceOf(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** Says that replicas did not answer, where some did not. */
export function SilentNotice({ count }: { readonly count: number }) {
  if (count === 0) return undefined;
  return (
    <p class="notice warn" role="status">
      <ToneIcon tone="warn" /> {count === 1 ? "One replica does" : `${count} replicas do`} not
      answer: their data is missing here.
    </p>
  );
}

/**
 * A part of something, as a bar with its text beside it.
 *
 * @property more a second part that follows the first, and is lighter
 */
export function Meter({
  ratio,
  more = 0,
  tone = "good",
}: {
  readonly ratio: number;
  readonly more?: number;
  readonly tone?: Tone;
}) {
  const part = Math.max(0, Math.min(1, ratio));
  const both = Math.max(part, Math.min(1, ratio + more));
  return (
    <svg class={`meter ${tone}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="meter-ground" width="100" height="10" />
      {both > part ? <rect class="meter-more" width={100 * both} height="10" /> : undefined}
      <rect class="meter-part" width={100 * part} height="10" />
    </svg>
  );
}
