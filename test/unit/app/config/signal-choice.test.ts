import { describe, expect, it } from "vitest";
import { chooseSignals } from "../../../../src/app/config/signal-choice.js";

function choose(prometheusUrl: string | undefined, signalTokens?: string) {
  const problems: string[] = [];
  return { signals: chooseSignals({ prometheusUrl, signalTokens }, problems), problems };
}

describe("chooseSignals()", () => {
  it("is nothing where nothing is set", () => {
    expect(choose(undefined)).toEqual({ signals: {}, problems: [] });
    expect(choose(undefined, "/tokens")).toEqual({
      signals: { tokensPath: "/tokens" },
      problems: [],
    });
  });

  it.each([
    { url: "http://prometheus:9090", login: undefined },
    { url: "https://prometheus/prefix", login: undefined },
    { url: "https://me:word@prometheus/", login: "me:word" },
    { url: "https://me:w%40r%3Ad%zz@prometheus/", login: "me:w%40r%3Ad%zz" },
    { url: "https://me:w%40r%3Ad@prometheus/", login: "me:w@r:d" },
  ])("keeps the login of $url apart", ({ url, login }) => {
    const { signals, problems } = choose(url);
    expect(problems).toEqual([]);
    const { prometheus } = signals;
    expect(prometheus?.url).not.toContain("@");
    const authorization = login && `Basic ${Buffer.from(login).toString("base64")}`;
    expect(prometheus?.authorization).toBe(authorization);
  });

  it.each([
    "prometheus:9090",
    "ftp://secret@a",
    "http://a?secret",
    "http://a#secret",
    "http://",
    "secret",
  ])("refuses %s without repeating it", (url) => {
    const chosen = choose(url);
    expect(chosen.problems).toHaveLength(1);
    expect(JSON.stringify(chosen)).not.toContain("secret");
  });
});
