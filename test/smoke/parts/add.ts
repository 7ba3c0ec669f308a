import { join } from 'node:path';
import { startPostgres } from 'test-postgres';
import { freePort } from '../../support/processes/free-port.ts';
import { AddedApplication } from '../added-application.ts';
import type { Addition } from '../added-application.ts';
import type { Checks } from '../checks.ts';
import { NEST_11, NEST_11_COMMONJS, NEST_12 } from '../nest-generator.ts';
import type { SmokeContext, SmokePart } from '../smoke-part.ts';

const PLAIN = { manager: 'npm', monorepo: false, console: false } as const;
/** Only the first runs without `--all`. */
const ADDITIONS: readonly Addition[] = [
  { ...PLAIN, name: NEST_12.name, generator: NEST_12, inbox: 'sqlite', console: true },
  { ...PLAIN, name: NEST_11.name, generator: NEST_11, inbox: 'postgres' },
  {
    ...PLAIN,
    name: NEST_11_COMMONJS.name,
    generator: NEST_11_COMMONJS,
    inbox: 'memory',
  },
  {
    ...PLAIN,
    name: `${NEST_12.name}, monorepo, pnpm`,
    generator: NEST_12,
    manager: 'pnpm',
    monorepo: true,
    inbox: 'memory',
  },
];

/** `nest add nestjs-payments` and `nest generate --collection nestjs-payments handler`, in generated applications. */
export const part: SmokePart = {
  description:
    'nest add nestjs-payments: builds, passes its tests, handles a payment, adds nothing twice',
  async run(context, checks) {
    for (const [index, addition] of ADDITIONS.slice(0, context.all ? undefined : 1).entries()) {
      await checkAddition(addition, join(context.folder, String(index)), context, checks);
    }
  },
};

async function checkAddition(
  addition: Addition,
  folder: string,
  context: SmokeContext,
  checks: Checks,
): Promise<void> {
  const title = `AP-17 ${addition.name}, ${addition.inbox}`;
  const application = await AddedApplication.create(addition, folder, context);
  const added = await checks.that(
    `${title}: nest add and nest generate change the application`,
    async () => {
      await application.add();
      await application.generateHandler();
    },
  );
  if (!added) return;
  await checks.that(`${title}: a second nest add changes nothing`, () =>
    application.addsNothingTwice(),
  );
  await checks.that(`${title}: npm test passes`, () => application.test());
  const built = await checks.that(`${title}: builds`, () => application.build());
  if (!built) return;
  await checks.that(
    `${title}: starts with the emulator, handles a payment${addition.monorepo ? '' : ', and passes its end-to-end test'}`,
    async () => {
      const postgres = addition.inbox === 'postgres' ? await startPostgres() : undefined;
      try {
        await application.handlesPayment(await freePort(), {
          CONSOLE_PASSWORD: 'correct horse battery',
          ...(postgres && { DATABASE_URL: await postgres.createDatabase() }),
        });
      } finally {
        await postgres?.end();
      }
    },
  );
}
