import type { StreamInfo } from '@nats-io/jetstream';
import { jetStream } from 'nestjs-payments-jetstream';
import { JetStreamServer } from '../support/engines/jetstream-server.ts';
import { describeEngine } from './engine-contract.ts';
import type { DeadLetter, RunningEngine } from './engine-contract.ts';

describeEngine({
  name: 'JetStream',
  installed: JetStreamServer.isInstalled(),
  keepsOrder: true,
  async start(): Promise<RunningEngine> {
    const server = await JetStreamServer.create();
    return {
      kill: () => server.kill(),
      restart: () => server.start(),
      url: server.url,
      adapter: (name, { url: servers = server.url, ...options } = {}) =>
        jetStream({
          servers,
          stream: name,
          oneReplica: true,
          // On a machine that is busy with something else, a connection takes seconds.
          connection: { timeout: 60_000 },
          ...options,
        }),
      deadLetters: (name, service) => readDeadLetters(server, name, service),
      addForeignMessage: (name, _, body) =>
        server.manage(async (_manager, connection) => {
          await connection.request(`${name}.default.foreign`, body, { timeout: 30_000 });
        }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
});

async function readDeadLetters(
  server: JetStreamServer,
  name: string,
  service: string,
): Promise<DeadLetter[]> {
  return server.manage(async (manager) => {
    const { state }: StreamInfo = await manager.streams.info(`${name}_DEAD`);
    const letters: DeadLetter[] = [];
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
      const stored = await manager.streams.getMessage(`${name}_DEAD`, { seq });
      if (stored?.subject !== `${name}_dead.${service}`) continue;
      letters.push({ code: stored.header.get('payments-code'), body: stored.data });
    }
    return letters;
  });
}
