import { join } from 'node:path';
import type { InboxChoice } from '../apps/payments-options.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Row, Scale, Table } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { ownPostgres, temporaryFolder } from './shared/create-temporary-storage.ts';

const HUNG = 'while 20 attempts of another handler hang';
const ALONE = 'without another handler';

/** Measures IN-29: while another handler hangs, p95 of the time until a handler is called stays below 100 ms. */
export const isolation: Row = {
  name: 'isolation',
  title: 'A handler next to a handler that hangs',
  rounds: 3,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const server = await ownPostgres(ending);
    return [
      await table('memory', async () => ({ kind: 'memory' }), scale, ending),
      await table(
        'sqlite',
        async (name) => ({ kind: 'sqlite', file: join(folder, `${name}.db`) }),
        scale,
        ending,
      ),
      await table(
        'postgres',
        async () => ({ kind: 'postgres', url: await server.createDatabase() }),
        scale,
        ending,
      ),
    ];
  },
};

async function table(
  store: string,
  choose: (name: string) => Promise<InboxChoice>,
  scale: Scale,
  ending: AsyncDisposableStack,
): Promise<Table> {
  const start = async (name: string): Promise<CommandProcess> => {
    const app = await startChild('apps/hanging-handler.ts', await choose(name));
    ending.defer(() => app.stop());
    return app;
  };
  const [hung, alone] = [await start('hung'), await start('alone')];
  await hung.request('hang');
  const contender = (name: string, app: CommandProcess) => ({
    name,
    measure: async () => ({ value: await app.request<number>('p95', sized(scale, 200)) }),
  });
  return {
    title: `p95 of the time from sending an event to its handler, 20 events/s, ${store}`,
    unit: 'ms',
    better: 'lower',
    contenders: [contender(HUNG, hung), contender(ALONE, alone)],
    targets: [{ text: 'at most 100 ms', of: 'value', subject: HUNG, at: 'most', bound: 100 }],
  };
}
