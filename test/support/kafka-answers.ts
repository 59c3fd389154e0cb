import * as apis from "../../src/wire/kafka/kafka-apis.js";

/** A response that Apache Kafka 4.3.0 sent, behind its correlation identifier. */
export interface RecordedAnswer {
  readonly api: apis.KafkaApi<never, unknown>;
  readonly bytes: Buffer;
  readonly decoded: unknown;
}

const bootstrap = { host: "127.0.0.1", port: 29_092 };

const rows: readonly (readonly [RecordedAnswer["api"], string, unknown])[] = [
  [
    apis.apiVersions,
    "AAAAAAAEAAAAAAANAAEABAASAAIAAQALAAMAAAAN",
    new Map([
      [0, [0, 13]],
      [1, [4, 18]],
      [2, [1, 11]],
      [3, [0, 13]],
    ]),
  ],
  [
    apis.clusterMetadata,
    "AAAAAAAAAAEAAAABAAkxMjcuMC4wLjEAAHGk//8AFkFBQUFBQUFBQUFBQUFBQUFBQUFBQVEAAAABAAAAAgAAAAZv" +
      "cmRlcnMAAAAAAgAAAAAAAAAAAAEAAAABAAAAAQAAAAEAAAABAAAAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAwAE" +
      "bm9uZQAAAAAA",
    {
      brokers: new Map([[1, bootstrap]]),
      topics: [
        {
          topic: "orders",
          errorCode: 0,
          partitions: [0, 1].map((partition) => ({ partition, errorCode: 0, leader: 1 })),
        },
        { topic: "none", errorCode: 3, partitions: [] },
      ],
    },
  ],
  [apis.findCoordinator, "AAAAAAAAAAROT05FAAAAAQAJMTI3LjAuMC4xAABxpA==", bootstrap],
  [
    apis.offsetFetch,
    "AAAAAQAGb3JkZXJzAAAAAQAAAAAAAAAAAAAAAQAAAAAAAA==",
    [{ topic: "orders", partition: 0, offset: 1 }],
  ],
  [
    apis.listOffsets,
    "AAAAAQAGb3JkZXJzAAAAAgAAAAAAAP//////////AAAAAAAAAAIAAAABAAD//////////wAAAAAAAAAB",
    [
      { topic: "orders", partition: 0, errorCode: 0, offset: 2 },
      { topic: "orders", partition: 1, errorCode: 0, offset: 1 },
    ],
  ],
  [
    apis.fetchTime,
    "AAAAAAAAAAEABm9yZGVycwAAAAEAAAAAAAAAAAAAAAAAAgAAAAAAAAAC/////wAAAFwAAAAAAAAAAAAAAFAAAAAA" +
      "AjDLdd0AAAAAAAEAAAGiHrx8sgAAAaIevICa//////////////////8AAAACHAAAAAEQcmVjb3JkIDAAHgDQDwIB" +
      "EHJlY29yZCAxAA==",
    { errorCode: 0, epochMs: 1_795_811_998_898 },
  ],
];

/** One response of each kind; of the first, fewer rows than were sent. */
export const recordedAnswers: readonly RecordedAnswer[] = rows.map(([api, text, decoded]) => ({
  api,
  bytes: Buffer.from(text, "base64"),
  decoded,
}));
