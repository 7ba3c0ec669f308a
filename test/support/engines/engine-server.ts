import { Queue } from 'bullmq';
import { BullMQServer } from './bullmq-server.ts';
import { EVENTS } from './create-engine-adapter.ts';
import type { EngineName } from './create-engine-adapter.ts';
import { JetStreamServer } from './jetstream-server.ts';
import { RabbitMQServer } from './rabbitmq-server.ts';

/** The messages of one service that are left in an engine. */
export interface LeftMessages {
  /** Messages that the service has not acknowledged. */
  readonly waiting: number;
  readonly deadLetters: number;
}

/** The server of an engine, in a process of its own. */
export interface EngineServer extends AsyncDisposable {
  /** The address with user and password. */
  readonly url: string;
  /** Starts the server again, on the same port and with the same data. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Kills the server with SIGKILL. */
  kill(): Promise<void>;
  /** Stops the server in order. */
  stop(): Promise<void>;
  /** Pauses the server, so that it keeps its connections and does not answer. */
  pause(): void;
  resume(): void;
  /** Counts the messages that are left for a service. */
  left(service: string): Promise<LeftMessages>;
}

/** For each engine: the Debian package of its server, whether this machine has it, and how it starts. */
export const ENGINES: Readonly<
  Record<
    EngineName,
    {
      readonly debianPackage: string;
      isInstalled(): boolean;
      start(): Promise<EngineServer>;
    }
  >
> = {
  jetstream: {
    debianPackage: 'nats-server',
    isInstalled: () => JetStreamServer.isInstalled(),
    async start() {
      const server = await JetStreamServer.create();
      const left = (service: string): Promise<LeftMessages> =>
        server.manage(async ({ consumers, streams }) => {
          const { num_pending, num_ack_pending } = await consumers.info(EVENTS, service);
          const { state } = await streams.info(`${EVENTS}_DEAD`, {
            subjects_filter: `${EVENTS}_dead.${service}`,
          });
          const deadLetters = sum(Object.values(state.subjects ?? {}));
          return { waiting: num_pending + num_ack_pending, deadLetters };
        });
      return Object.assign(server, { left });
    },
  },
  bullmq: {
    debianPackage: 'redis-server',
    isInstalled: () => BullMQServer.isInstalled(),
    async start() {
      const server = await BullMQServer.start();
      const left = async (service: string): Promise<LeftMessages> => {
        const queue = new Queue(`${EVENTS}.${service}`, { connection: server.client });
        try {
          const { completed: _, failed = 0, ...waiting } = await queue.getJobCounts();
          return { waiting: sum(Object.values(waiting)), deadLetters: failed };
        } finally {
          await queue.close();
        }
      };
      return Object.assign(server, { left });
    },
  },
  rabbitmq: {
    debianPackage: 'rabbitmq-server',
    isInstalled: () => RabbitMQServer.isInstalled(),
    async start() {
      const server = await RabbitMQServer.start();
      const left = async (service: string): Promise<LeftMessages> => {
        // The client cannot count the messages that were delivered and not acknowledged.
        const listed = await server.control('-q', 'list_queues', 'name', 'messages');
        const counts = new Map(
          listed.split('\n').map((line) => line.split('\t') as [string, string]),
        );
        const queue = `${EVENTS}.${service}`;
        return {
          waiting: Number(counts.get(queue)),
          deadLetters: Number(counts.get(`${queue}.dead`)),
        };
      };
      return Object.assign(server, { left, start: () => server.restart() });
    },
  },
};

/**
 * Returns the engine that the flag `--engine` names.
 *
 * @throws TypeError if there is no such engine, and Error with the Debian package if this machine does not have its server.
 */
export function engineOfFlag(name: string): EngineName {
  if (!Object.hasOwn(ENGINES, name)) {
    throw new TypeError(`--engine must be one of ${Object.keys(ENGINES).join(', ')}`);
  }
  const engine = name as EngineName;
  const { debianPackage } = ENGINES[engine];
  if (ENGINES[engine].isInstalled()) return engine;
  throw new Error(
    `--engine ${engine} needs a server that this machine does not have. On Debian: apt-get install ${debianPackage}`,
  );
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
