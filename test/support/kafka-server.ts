import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestAuthority } from "./certificates.js";
import { ChildProgram, type ProgramCommand } from "./child-program.js";
import { freePort } from "./free-port.js";
import { KafkaTestClient } from "./kafka-client.js";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** How clients reach a broker: each listener has a port of its own. */
export interface KafkaPorts {
  readonly plain: number;
  /** SASL without TLS. */
  readonly sasl: number;
  /** TLS that asks for a certificate of `authority`. */
  readonly tls: number;
  /** SASL over TLS. */
  readonly saslTls: number;
}

/** Users of every server. `stranger` may read nothing. */
export const kafkaUsers = { lag: "right-password", stranger: "other-password" } as const;

/** A JVM that starts fast and stays small. */
const jvm = {
  KAFKA_HEAP_OPTS: "-Xms64m -Xmx256m",
  KAFKA_JVM_PERFORMANCE_OPTS: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto",
};

/** A real broker that is its own controller, in a folder of the stage. */
export class KafkaServer {
  readonly ports: KafkaPorts;
  readonly #stage: Stage;
  readonly #configuration: string;
  #program: ChildProgram | undefined;

  private constructor(stage: Stage, ports: KafkaPorts, configuration: string) {
    this.#stage = stage;
    this.ports = ports;
    this.#configuration = configuration;
  }

  /** Resolves when the broker answers; it ends with the stage. */
  static async start(stage: Stage, authority: TestAuthority): Promise<KafkaServer> {
    const [plain, sasl, tls, saslTls, controller] = await Promise.all(
      Array.from({ length: 5 }, () => freePort()),
    );
    if (!plain || !sasl || !tls || !saslTls || !controller) throw new Error("no free ports");
    const ports = { plain, sasl, tls, saslTls };
    const files = await writeTlsFiles(stage, authority);
    const configuration = join(stage.folder, "kafka.properties");
    const rows = configurationRows({ ports, controller, files, data: join(stage.folder, "kafka") });
    await writeFile(configuration, rows.join("\n"));
    const server = new KafkaServer(stage, ports, configuration);
    await server.#format();
    stage.atEnd(() => server.kill());
    await server.restart();
    return server;
  }

  /** Starts it again on the same ports after `kill`, with what it has stored. */
  async restart(): Promise<void> {
    const command = await javaCommand(["kafka.Kafka", this.#configuration]);
    const program = new ChildProgram(command);
    this.#stage.printAtFailure(program);
    this.#program = program;
    const answers = async (): Promise<boolean> => {
      const client = await KafkaTestClient.connect(this.ports.plain);
      return client.isReady().finally(() => client.close());
    };
    await waitFor("the broker answers", () => !program.isRunning || answers(), {
      withinMs: 60_000,
      everyMs: 50,
    });
    if (!program.isRunning) throw new Error(`kafka did not start: ${program.output}`);
  }

  /** Stops it in its tracks: connections stay open, nothing is answered. */
  pause(): void {
    this.#program?.signal("SIGSTOP");
  }

  resume(): void {
    this.#program?.signal("SIGCONT");
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#program?.kill();
    this.#program = undefined;
  }

  async #format(): Promise<void> {
    const words = ["kafka.tools.StorageTool", "format", "--config", this.#configuration];
    words.push("--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ");
    for (const [name, password] of Object.entries(kafkaUsers)) {
      for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-512"]) {
        words.push("--add-scram", `${mechanism}=[name=${name},password=${password}]`);
      }
    }
    const program = new ChildProgram(await javaCommand(words));
    const { code } = await program.exited;
    if (code !== 0) throw new Error(`kafka's storage was not formatted: ${program.output}`);
  }
}

async function javaCommand(args: readonly string[]): Promise<ProgramCommand> {
  return { name: "kafka", file: await requireProgram("kafka"), args, env: jvm };
}

interface TlsFiles {
  readonly keys: string;
  readonly authority: string;
}

async function writeTlsFiles(stage: Stage, authority: TestAuthority): Promise<TlsFiles> {
  const { certificate, key } = authority.issue({ names: ["localhost"] });
  const files = { keys: join(stage.folder, "kafka.pem"), authority: join(stage.folder, "ca.pem") };
  await writeFile(files.keys, `${key}${certificate}`);
  await writeFile(files.authority, authority.certificate);
  return files;
}

interface ServerPlace {
  readonly ports: KafkaPorts;
  readonly controller: number;
  readonly files: TlsFiles;
  readonly data: string;
}

function configurationRows({ ports, controller, files, data }: ServerPlace): readonly string[] {
  const { plain, sasl, tls, saslTls } = ports;
  const listeners = [
    `PLAINTEXT://localhost:${plain}`,
    `SASL_PLAINTEXT://localhost:${sasl}`,
    `SSL://localhost:${tls}`,
    `SASL_SSL://localhost:${saslTls}`,
  ].join(",");
  const users = Object.entries(kafkaUsers).map(([name, word]) => `user_${name}="${word}"`);
  const modules = "org.apache.kafka.common.security";
  const logins = ["sasl_plaintext", "sasl_ssl"].flatMap((listener) => [
    `listener.name.${listener}.plain.sasl.jaas.config=` +
      `${modules}.plain.PlainLoginModule required ${users.join(" ")};`,
    ...["scram-sha-256", "scram-sha-512"].map(
      (mechanism) =>
        `listener.name.${listener}.${mechanism}.sasl.jaas.config=` +
        `${modules}.scram.ScramLoginModule required;`,
    ),
  ]);
  return [
    "process.roles=broker,controller",
    "node.id=1",
    `controller.quorum.voters=1@localhost:${controller}`,
    "controller.listener.names=CONTROLLER",
    `listeners=${listeners},CONTROLLER://localhost:${controller}`,
    `advertised.listeners=${listeners}`,
    "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT," +
      "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    ...logins,
    "ssl.keystore.type=PEM",
    `ssl.keystore.location=${files.keys}`,
    "ssl.truststore.type=PEM",
    `ssl.truststore.location=${files.authority}`,
    "listener.name.ssl.ssl.client.auth=required",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    // Whoever has no name, the owner of a certificate, and the one who reads the lag.
    "super.users=User:ANONYMOUS;User:CN=Test certificate;User:lag",
    `log.dirs=${data}`,
    "auto.create.topics.enable=false",
    "offsets.topic.num.partitions=1",
    "offsets.topic.replication.factor=1",
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.min.isr=1",
    // Else a broker that was killed is let in again after nine seconds only.
    "broker.session.timeout.ms=1000",
    "broker.heartbeat.interval.ms=100",
    "controller.quorum.election.timeout.ms=200",
    "controller.quorum.fetch.timeout.ms=500",
    "num.network.threads=1",
    "num.io.threads=2",
  ];
}
