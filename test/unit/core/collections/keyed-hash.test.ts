import { describe, expect, it } from "vitest";
import {
  createSecret,
  type Digest,
  KeyedHash,
} from "../../../../src/core/collections/keyed-hash.js";
import { FakeRandom } from "../../../support/fake-random.js";

/** Of the reference implementation's test vectors. Source: chaskey.c of the paper's authors. */
const referenceSecret: Digest = {
  a: 0x833d3433 | 0,
  b: 0x009f389f,
  c: 0x2398e64f,
  d: 0x417acf39,
};

const counting = Uint8Array.from({ length: 64 }, (_, i) => i);

function hex({ a, b, c, d }: Readonly<Digest>): string {
  return [a, b, c, d].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join(" ");
}

function bitsBetween(one: Readonly<Digest>, other: Readonly<Digest>): number {
  const words = [one.a ^ other.a, one.b ^ other.b, one.c ^ other.c, one.d ^ other.d];
  return words.reduce((sum, word) => sum + (word >>> 0).toString(2).replaceAll("0", "").length, 0);
}

describe("KeyedHash", () => {
  it.each([
    { length: 0, digest: "792e8fe5 75ce87aa 2d1450b5 1191970b" },
    { length: 1, digest: "13a9307b 50e62c89 4577bd88 c0bbdc18" },
    { length: 16, digest: "79271ca9 d66a1c71 81ca474e 49831cad" },
  ])("is Chaskey with eight rounds: $length bytes", ({ length, digest }) => {
    expect(hex(new KeyedHash(referenceSecret).ofBytes(counting, 0, length))).toBe(digest);
  });

  it("reads the bytes between two places and no others", () => {
    const hash = new KeyedHash(referenceSecret);
    for (let from = 0; from < 20; from += 1) {
      for (let to = from; to <= 40; to += 1) {
        const whole = hex(hash.ofBytes(counting.slice(from, to), 0, to - from));
        expect(hex(hash.ofBytes(counting, from, to))).toBe(whole);
      }
    }
  });

  it("reads a text as the bytes of its UTF-16 units, low byte first", () => {
    const hash = new KeyedHash(referenceSecret);
    for (let length = 0; length < 40; length += 1) {
      const text = "aé€\ud83d\ude00".repeat(8).slice(0, length);
      const bytes = Buffer.from(text, "utf16le");
      expect(hex(hash.ofText(text))).toBe(hex(hash.ofBytes(bytes, 0, bytes.length)));
    }
  });

  it("tells apart what differs in length alone, and in one bit", () => {
    const hash = new KeyedHash(createSecret(new FakeRandom(7)));
    const zeros = new Uint8Array(1_200);
    const seen = new Set<string>();
    for (let length = 0; length <= 1_200; length += 1)
      seen.add(hex(hash.ofBytes(zeros, 0, length)));
    for (let bit = 0; bit < 8 * 100; bit += 1) {
      const bytes = new Uint8Array(100);
      bytes[bit >> 3] = 1 << (bit & 7);
      seen.add(hex(hash.ofBytes(bytes, 0, 100)));
    }
    expect(seen.size).toBe(1_201 + 800);
  });

  it("changes half of the digest's bits with one bit of what it reads, or of the secret", () => {
    const bytes = counting.slice(0, 45);
    const secret = createSecret(new FakeRandom(3));
    const digest = { ...new KeyedHash(secret).ofBytes(bytes, 0, 45) };
    for (let bit = 0; bit < 45 * 8; bit += 1) {
      const changed = Uint8Array.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const between = bitsBetween(digest, new KeyedHash(secret).ofBytes(changed, 0, 45));
      // Five standard deviations of 128 fair coins.
      expect(Math.abs(between - 64)).toBeLessThan(29);
    }
    const other = new KeyedHash({ ...secret, b: secret.b ^ 1 }).ofBytes(bytes, 0, 45);
    expect(Math.abs(bitsBetween(digest, other) - 64)).toBeLessThan(29);
  });

  it("reads texts and bytes that are longer than its room", () => {
    const hash = new KeyedHash(referenceSecret);
    const text = "k".repeat(70_000);
    const long = hex(hash.ofText(text));
    expect(hex(hash.ofText(`${text}k`))).not.toBe(long);
    const bytes = Buffer.from(text, "utf16le");
    expect(hex(new KeyedHash(referenceSecret).ofBytes(bytes, 0, bytes.length))).toBe(long);
  });
});

describe("createSecret()", () => {
  it("takes 128 bits of randomness", () => {
    const secrets = [1, 2].map((seed) => createSecret(new FakeRandom(seed)));
    for (const { a, b, c, d } of secrets) expect(new Set([a, b, c, d]).size).toBe(4);
    expect(secrets[0]).not.toEqual(secrets[1]);
  });
});
