import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ToneIcon } from "../parts/status.jsx";
import { useElement } from "../state/element.js";
import { keepPlace } from "../state/location.js";
import { type SignInWay, signInWithToken } from "../state/session.js";

/** The form to sign in with, alone in the page or over what was being done. */
export function SignIn({ ways }: { readonly ways: readonly SignInWay[] }) {
  const token = useSignal("");
  const failure = useSignal<string | undefined>(undefined);
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
      {ways.includes("oidc") ? (
        <a class="button" href="/console/oidc/start" onClick={keepPlace}>
          Single sign-on
        </a>
      ) : undefined}
      {ways.length === 0 ? (
        <p class="notice warn">
          <ToneIcon tone="warn" /> Your client certificate gives no access here, and there is no
          other way in. The file in HEADGATE_ADMIN_ACCESS says who may look.
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
  useEffect(() => dialog.current?.showModal(), []);
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
      <SignIn ways={ways} />
    </dialog>
  );
}
