import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ToneIcon } from "../parts/status.jsx";
import { pause, untilVisible } from "../state/browser.js";
import { useElement } from "../state/element.js";
import { keepPlace, signInFailure } from "../state/location.js";
import {
  isEndedHereOnly,
  refreshSession,
  type SignInWay,
  signInWithToken,
} from "../state/session.js";

/** What the server says of a sign-in at the identity provider that failed. */
const providerFailures: ReadonlyMap<string, string> = new Map([
  ["denied", "The identity provider denied the sign-in."],
  ["stale", "The sign-in took too long or was started in another browser. Try again."],
  ["unavailable", "The identity provider does not answer. Try again later."],
  ["refused", "Headgate does not accept the answer of the identity provider."],
  ["unknown", "You signed in, but HEADGATE_ADMIN_ACCESS grants you no access."],
]);

/** A session that begins in another tab is noticed so soon. */
const lookEveryMs = 1_000;

interface SignInProps {
  readonly ways: readonly SignInWay[];
  /** Whether there is something in this page to be kept, which another page would take away. */
  readonly isAgain?: boolean;
}

/** The form to sign in with, alone in the page or over what was being done. */
export function SignIn({ ways, isAgain = false }: SignInProps) {
  const token = useSignal("");
  const failure = useSignal(isAgain ? undefined : providerFailures.get(signInFailure));
  const submit = async (): Promise<void> => {
    failure.value = await signInWithToken(token.value.trim());
    if (failure.value === undefined) token.value = "";
  };
  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>Headgate</h1>
      {ways.includes("token") ? (
        <>
          <label class="field">
            <span>Bearer token</span>
            <input
              type="password"
              autocomplete="current-password"
              required
              value={token.value}
              onInput={(event) => (token.value = event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary">
            Sign in
          </button>
        </>
      ) : undefined}
      {!ways.includes("oidc") ? undefined : isAgain ? (
        <a class="button" href="/console/oidc/start" target="_blank" rel="noopener">
          Single sign-on, in a new tab
        </a>
      ) : (
        <a class="button" href="/console/oidc/start" onClick={keepPlace}>
          Single sign-on
        </a>
      )}
      {ways.length === 0 ? (
        <p class="notice warn">
          <ToneIcon tone="warn" /> Your client certificate gives no access here, and there is no
          other way in. The file in HEADGATE_ADMIN_ACCESS says who may look.
        </p>
      ) : undefined}
      {isEndedHereOnly.value && !isAgain ? (
        <p class="notice warn" role="status">
          <ToneIcon tone="warn" /> You are signed out of the replica that serves this page. The
          store does not answer: the other replicas end the session when it does.
        </p>
      ) : undefined}
      {failure.value === undefined ? undefined : (
        <p class="notice bad" role="alert">
          <ToneIcon tone="bad" /> {failure.value}
        </p>
      )}
    </form>
  );
}

/** The same over a view whose session has ended: what was entered there stays. */
export function SignInAgain({ ways }: { readonly ways: readonly SignInWay[] }) {
  const dialog = useElement<HTMLDialogElement>();
  useEffect(() => {
    dialog.current?.showModal();
    const end = new AbortController();
    void lookForSession(end.signal);
    return () => end.abort();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label="Sign in again"
      // It closes when there is a session.
      onCancel={(event) => event.preventDefault()}
    >
      <p class="notice warn" role="status">
        <ToneIcon tone="warn" /> Your session has ended. Sign in again to go on where you are.
      </p>
      <SignIn ways={ways} isAgain={true} />
    </dialog>
  );
}

async function lookForSession(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(lookEveryMs, signal);
    await untilVisible(signal);
    if (!signal.aborted) await refreshSession();
  }
}
