import { createHash } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { InstallError, installWhole, stepper, type Tool } from "../../src/programs/install.js";
import type { ProgramRow, ToolEnvironment } from "../../src/programs/programs.js";

const kafkaVersion = "4.3.0";

/** SHA-256 of a line for each jar, by name: its name, a space and its SHA-256 in hexadecimal. */
const jarsHash = "a24dc7d8c3cd5e200695a96ceea04a9a9e5fa77b7ecff37a8afa58de2e0adbe7";

/** Resolves the broker's libraries, and what makes its errors visible. */
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headgate</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${kafkaVersion}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
`;

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/** As the script of that name in Kafka's distribution: it runs a class with a JVM's options. */
const launcher = `#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
exec java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS -cp "$here/libs/*" "$@"
`;

const kafkaRow: ProgramRow = {
  name: "kafka",
  variable: "KAFKA_RUN_CLASS_BIN",
  command: "kafka-run-class.sh",
  versionArgs: ["kafka.Kafka", "--version"],
  versionPattern: /^(\d+\.\d+\.\d+)/m,
  versionMin: "4.0.0",
  hint:
    "put Kafka's kafka-run-class.sh on PATH, name one in KAFKA_RUN_CLASS_BIN, or install " +
    "Java 17 and Maven",
};

const folder = `kafka-${kafkaVersion}`;

/** Apache Kafka: its jars from Maven's repository, run by the machine's Java. */
export const kafkaTool: Tool = {
  ...kafkaRow,
  installs: [
    {
      program: kafkaRow,
      source: `kafka_2.13 ${kafkaVersion} from Maven Central`,
      folder,
      run: installKafka,
    },
  ],
};

function installKafka(environment: ToolEnvironment): Promise<void> {
  return installWhole(folder, environment, async (place) => {
    const step = stepper("kafka", environment);
    const [pom, libs] = [join(place, "pom.xml"), join(place, "libs")];
    writeFileSync(pom, project);
    await step("looking for Java", "java", ["-version"]);
    const words = ["--quiet", "--batch-mode", "--file", pom, copyDependencies];
    words.push("-DincludeScope=runtime", `-DoutputDirectory=${libs}`);
    await step(`downloading Kafka ${kafkaVersion} by Maven`, "mvn", words);
    if (hashOf(libs) !== jarsHash) throw new InstallError("Kafka's jars are not those expected");
    rmSync(pom);
    const file = join(place, "bin", kafkaRow.command);
    writeFileSync(file, launcher);
    chmodSync(file, 0o755);
  });
}

function hashOf(libs: string): string {
  const lines = readdirSync(libs)
    .sort()
    .map((name) => {
      const hash = createHash("sha256")
        .update(readFileSync(join(libs, name)))
        .digest("hex");
      return `${name} ${hash}\n`;
    });
  return createHash("sha256").update(lines.join("")).digest("hex");
}
