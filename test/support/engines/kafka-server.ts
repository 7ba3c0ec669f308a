import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { RunningProcess } from '../processes/running-process.ts';

const HOST = '127.0.0.1';
const METADATA = 3;
const JOIN_GROUP = 11;
const SYNC_GROUP = 14;
const API_VERSIONS = 18;
export const CREATE_TOPICS = 19;
export const DESCRIBE_CONFIGS = 32;
/** For each request whose newest version the mock cluster of librdkafka 2.0 answers wrongly: its newest correct version. */
const NEWEST = new Map([
  [2, 3],
  [22, 1],
]);
/** The settings that a topic has by default. */
const SETTINGS = {
  'min.insync.replicas': '2',
  'cleanup.policy': 'delete',
  'retention.ms': '604800000',
  'retention.bytes': '-1',
  'unclean.leader.election.enable': 'false',
};
/**
 * The session timeout of each member of a group, in milliseconds. In a rebalance, the mock cluster waits for this time less
 * one second, even if all members have joined. A broker does not.
 */
const SESSION_MS = 4000;
const UNKNOWN_TOPIC = 3;
/** Instead of the kind of a request: no answer is passed on. */
const CUT = -1;
const ALREADY_EXISTS = 36;

/**
 * The mock cluster of librdkafka: three brokers that speak the protocol of Kafka and keep messages and offsets in memory, in
 * a process of kcat. A proxy in this process can cut off the brokers. The mock cluster has no requests that create topics
 * or read their settings, so the proxy answers these.
 */
export class KafkaServer implements AsyncDisposable {
  /**
   * The settings of each topic that was created. The mock cluster creates every topic with four partitions, three replicas
   * and no settings when a client reads its metadata.
   */
  readonly topics = new Map<string, Readonly<Record<string, string>>>();
  /** For each kind of request that the proxy answers: the number of the error with which it answers. */
  readonly errors = new Map<number, number>();
  /** Whether the broker gets this request, and the client no answer, because its connection is cut. */
  cutAfter: (request: Buffer) => boolean = () => false;
  readonly #process: RunningProcess;
  readonly #proxies: Server[] = [];
  readonly #sockets = new Set<Socket>();
  /** For each port of a broker, the port of its proxy. */
  readonly #ports = new Map<number, number>();

  /** For each generation of a group, the members whose SyncGroup was sent, and how to send that of the leader. */
  readonly #syncs = new Map<string, { others: number; isComplete: () => void }>();

  private constructor() {
    // As a producer without input, kcat only runs its mock cluster.
    const args = ['-P', '-b', 'none', '-t', 'none', '-X', 'test.mock.num.brokers=3'];
    this.#process = new RunningProcess('kcat', args, { input: true });
  }

  /** Whether this machine has kcat. */
  static isInstalled(): boolean {
    return spawnSync('kcat', ['-V']).status === 0;
  }

  static async start(): Promise<KafkaServer> {
    const server = new KafkaServer();
    const [, list] = await server.#process.prints(/replaced with (\S+)/);
    for (const address of list!.split(',')) server.#ports.set(Number(address.split(':')[1]), 0);
    await server.restart();
    return server;
  }

  /** The addresses of the brokers. */
  get brokers(): string[] {
    return [...this.#ports.values()].map((port) => `${HOST}:${port}`);
  }

  /** Cuts all connections, and refuses new ones. */
  async kill(): Promise<void> {
    for (const proxy of this.#proxies.splice(0)) proxy.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Accepts connections again. */
  async restart(): Promise<void> {
    for (const [port, own] of this.#ports) {
      const proxy = createServer((client) => this.#forward(client, port));
      proxy.listen(own, HOST);
      await once(proxy, 'listening');
      this.#proxies.push(proxy);
      this.#ports.set(port, (proxy.address() as { port: number }).port);
    }
  }

  /** Pauses the brokers, so that they keep their connections and do not answer. */
  pause(): void {
    this.#process.signal('SIGSTOP');
  }

  resume(): void {
    this.#process.signal('SIGCONT');
  }

  /** Runs kcat as a client, and returns what it prints. */
  async kcat(args: readonly string[], input?: Uint8Array): Promise<string> {
    await using client = new RunningProcess('kcat', ['-b', this.brokers.join(), ...args], {
      input: true,
    });
    client.end(input);
    const { code } = await client.ended;
    if (code !== 0) throw new Error(`kcat ended with ${code}:\n${client.output}`);
    return client.stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#process.kill();
  }

  #forward(client: Socket, port: number): void {
    const broker = connect(port, HOST);
    for (const [socket, other] of [
      [client, broker],
      [broker, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    /** For each request without an answer, its kind. */
    const kinds = new Map<number, number>();
    onFrames(client, (frame) => {
      const [kind, id] = [frame.readInt16BE(4), frame.readInt32BE(8)];
      const request = frame.subarray(14 + Math.max(0, frame.readInt16BE(12)));
      const answer = this.#answer(kind, request);
      if (answer !== undefined) return client.write(toFrame(int32(id), answer));
      kinds.set(id, this.cutAfter(frame) ? CUT : kind);
      if (kind === JOIN_GROUP) request.writeInt32BE(SESSION_MS, 2 + request.readInt16BE(0));
      const send = (): void => void broker.write(frame);
      return kind === SYNC_GROUP ? this.#syncAfterOthers(new Reader(request), send) : send();
    });
    onFrames(broker, (frame) => {
      const id = frame.readInt32BE(4);
      const kind = kinds.get(id)!;
      kinds.delete(id);
      return kind === CUT ? client.destroy() : client.write(this.#edit(kind, frame));
    });
  }

  /**
   * Sends SyncGroup, version 3. The mock cluster refuses the members whose request arrives after that of the leader, so the
   * request of the leader waits for those of all others.
   */
  #syncAfterOthers(request: Reader, send: () => void): void {
    const generation = `${request.string()}/${request.int32()}`;
    request.string();
    request.string();
    const members = request.int32();
    const sync = this.#syncs.get(generation) ?? { others: 0, isComplete: () => {} };
    this.#syncs.set(generation, sync);
    if (members === 0) {
      send();
      sync.others += 1;
      sync.isComplete();
    } else {
      // The mock cluster must have read the other requests, which have connections of their own.
      sync.isComplete = () => {
        if (sync.others >= members - 1) setTimeout(send, members === 1 ? 0 : 100);
      };
      sync.isComplete();
    }
  }

  /** Replaces the ports of the brokers by those of the proxies, and what is wrong in the answers of the mock cluster. */
  #edit(kind: number, frame: Buffer): Buffer {
    for (const [port, own] of this.#ports) {
      const address = Buffer.concat([Buffer.from(HOST), int32(port)]);
      for (let at = frame.indexOf(address); at !== -1; at = frame.indexOf(address, at)) {
        int32(own).copy(frame, at + HOST.length);
      }
    }
    if (kind === METADATA) {
      // No broker is the controller. The controller follows the name of the cluster.
      const name = frame.indexOf('mockCluster');
      frame.writeInt32BE(1, name + frame.readInt16BE(name - 2));
    }
    // The mock cluster refuses version 3, after which clients use version 1.
    if (kind !== API_VERSIONS || frame.readInt16BE(8) !== 0) return frame;
    // Version 1: id, error, number of entries, and entries of 6 bytes: kind, oldest and newest version.
    const end = 14 + 6 * frame.readInt32BE(10);
    for (let at = 14; at < end; at += 6) {
      frame.writeInt16BE(NEWEST.get(frame.readInt16BE(at)) ?? frame.readInt16BE(at + 4), at + 4);
    }
    const own = [CREATE_TOPICS, DESCRIBE_CONFIGS];
    const entries = own.map((one) => Buffer.concat([int16(one), int32(0)]));
    const count = int32(frame.readInt32BE(10) + own.length);
    return toFrame(
      frame.subarray(4, 10),
      count,
      frame.subarray(14, end),
      ...entries,
      frame.subarray(end),
    );
  }

  #answer(kind: number, request: Buffer): Buffer | undefined {
    if (kind === CREATE_TOPICS) return this.#createTopic(new Reader(request));
    if (kind === DESCRIBE_CONFIGS) return this.#describeConfigs(new Reader(request));
    return undefined;
  }

  /** CreateTopics, version 0. */
  #createTopic(request: Reader): Buffer {
    request.skip(4);
    const name = request.string();
    request.skip(4 + 2 + 4);
    const settings: Record<string, string> = {};
    for (let left = request.int32(); left > 0; left -= 1)
      settings[request.string()] = request.string();
    const error = this.errors.get(CREATE_TOPICS) ?? (this.topics.has(name) ? ALREADY_EXISTS : 0);
    if (error === 0) this.topics.set(name, settings);
    return Buffer.concat([int32(1), string(name), int16(error)]);
  }

  /** DescribeConfigs, version 0. */
  #describeConfigs(request: Reader): Buffer {
    request.skip(5);
    const name = request.string();
    const own = this.topics.get(name);
    const error = this.errors.get(DESCRIBE_CONFIGS) ?? (own === undefined ? UNKNOWN_TOPIC : 0);
    const settings = Object.entries({ ...SETTINGS, ...own });
    const flags = Buffer.from([0, 0, 0]);
    return Buffer.concat([
      int32(0),
      int32(1),
      int16(error),
      int16(-1),
      Buffer.from([2]),
      string(name),
      int32(settings.length),
      ...settings.flatMap(([key, value]) => [string(key), string(value), flags]),
    ]);
  }
}

/** Reads the values of a request. */
class Reader {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  skip(count: number): void {
    this.#at += count;
  }

  int32(): number {
    this.#at += 4;
    return this.bytes.readInt32BE(this.#at - 4);
  }

  string(): string {
    const start = this.#at + 2;
    this.#at = start + Math.max(0, this.bytes.readInt16BE(this.#at));
    return this.bytes.toString('utf8', start, this.#at);
  }
}

/** Calls `take` for each request or answer, including the four bytes of its length. */
function onFrames(socket: Socket, take: (frame: Buffer) => void): void {
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0)) {
      const end = 4 + bytes.readInt32BE(0);
      take(Buffer.from(bytes.subarray(0, end)));
      bytes = bytes.subarray(end);
    }
  });
}

function toFrame(...parts: readonly Buffer[]): Buffer {
  const frame = Buffer.concat([int32(0), ...parts]);
  frame.writeInt32BE(frame.length - 4, 0);
  return frame;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function string(text: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)]);
}
