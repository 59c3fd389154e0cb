import {
  choiceOption,
  durationOption,
  optionalTextOption,
  secretOption,
  textOption,
} from "./option.js";

/** The console: its pages for browsers on the admin port, and how people sign in. */
export const consoleOptionRows = {
  console: choiceOption({
    env: "HEADGATE_CONSOLE",
    choices: ["on", "read-only", "off"],
    defaultValue: "on",
    docs:
      "Whether the admin port serves the console to browsers. With `read-only` nobody changes " +
      "anything by it, whatever their role; command lines and programs still do.",
  }),
  consoleUrl: optionalTextOption({
    env: "HEADGATE_CONSOLE_URL",
    valueName: "URL",
    docs:
      "Where browsers reach the console, such as `https://headgate.example`, if a proxy stands " +
      "before it: identity providers send people back there. Without it, where a browser asked.",
  }),
  consoleSession: durationOption({
    env: "HEADGATE_CONSOLE_SESSION",
    defaultText: "8h",
    defaultValue: 28_800_000,
    minMs: 60_000,
    maxMs: 604_800_000,
    docs:
      "How long somebody who signed in stays so; less where the identity provider's token ends " +
      "before. What they may do is looked up at each call.",
  }),
  consoleKey: secretOption({
    env: "HEADGATE_CONSOLE_KEY",
    valueName: "SECRET",
    docs:
      "What sessions are sealed with, at least 32 random characters, the same for all replicas " +
      "behind one address. Without it each process has a key of its own, which ends with it.",
  }),
  consoleOidcClientId: optionalTextOption({
    env: "HEADGATE_CONSOLE_OIDC_CLIENT_ID",
    valueName: "NAME",
    docs:
      "What the console is called at the issuer of HEADGATE_ADMIN_OIDC_ISSUER: people sign in " +
      "there (authorization code with PKCE). Register `/console/oidc/callback` of its address.",
  }),
  consoleOidcClientSecret: secretOption({
    env: "HEADGATE_CONSOLE_OIDC_CLIENT_SECRET",
    valueName: "SECRET",
    docs: "The secret of that client, where the issuer gave it one.",
  }),
  consoleOidcScope: textOption({
    env: "HEADGATE_CONSOLE_OIDC_SCOPE",
    valueName: "WORDS",
    defaultValue: "openid",
    docs: "What is asked for at the issuer; some need `groups` to tell of them.",
  }),
  consoleOidcAuthorizationUrl: optionalTextOption({
    env: "HEADGATE_CONSOLE_OIDC_AUTHORIZATION_URL",
    valueName: "URL",
    docs: "Where browsers are sent to sign in. Without it, what the issuer's discovery says.",
  }),
  consoleOidcTokenUrl: optionalTextOption({
    env: "HEADGATE_CONSOLE_OIDC_TOKEN_URL",
    valueName: "URL",
    docs: "Where codes become tokens. Without it, what the issuer's discovery says.",
  }),
} as const;
