import { createHmac, randomUUID } from 'node:crypto';
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { succeed, environment } from '../support/processes/run-command.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import { PaymentsServer } from './fixtures/merchant/payments-server.ts';

const SOURCES = join(import.meta.dirname, 'fixtures/handling');
const COMPILER = join(import.meta.dirname, '../../node_modules/typescript/bin/tsc');
const COMPILER_OPTIONS = {
  target: 'ES2023',
  module: 'nodenext',
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  // The part `peers` checks types. This part needs only the compiled files.
  noCheck: true,
  types: [],
  rootDir: 'src',
  outDir: 'compiled',
};
const SECRET = 'whsec_R8s0xkq2vT5uY7wZ';

/**
 * Compiles the application of `fixtures/handling` to `<folder>/compiled`, in the module format of the folder's
 * package.json.
 *
 * @param threadPath a file that replaces `thread-path.ts`
 */
export async function compileHandling(folder: string, threadPath?: string): Promise<void> {
  await cp(SOURCES, join(folder, 'src'), { recursive: true });
  if (threadPath !== undefined) await cp(threadPath, join(folder, 'src/thread-path.ts'));
  const tsconfig = { compilerOptions: COMPILER_OPTIONS, include: ['src'] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  await succeed(process.execPath, [COMPILER], { cwd: folder });
}

/** Command that starts the application of `fixtures/handling`. */
export interface HandlingCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly inbox: 'memory' | 'sqlite';
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Starts the application of `fixtures/handling`, posts a signed event to it, waits until its handler has requested the
 * transaction from the API, and stops the application.
 *
 * @throws with the application's output if a step fails.
 */
export async function handlesEvent(command: HandlingCommand): Promise<void> {
  const { program, args, cwd, inbox, env } = command;
  await rm(join(cwd, 'payments-inbox.db'), { force: true });
  const service = new PaymentsServer();
  await using application = new RunningProcess(program, args, {
    cwd,
    env: {
      ...environment(),
      ...env,
      INBOX: inbox,
      PAYMENTS_BASE_URL: await service.start(),
      PAYMENTS_WEBHOOK_SECRET: SECRET,
    },
  });
  try {
    const [, url] = await application.prints(/listening on (http:\S+)/);
    const id = randomUUID();
    const status = await postEvent(url!, id);
    if (status !== 200) {
      throw new Error(`The application responded ${status}:\n${application.output}`);
    }
    await application.prints(new RegExp(`handled ${id}, complete`));
    const { code, signal } = await application.kill('SIGTERM');
    if (code !== 0 && signal !== 'SIGTERM') {
      throw new Error(`It exited with ${code ?? signal}:\n${application.output}`);
    }
  } finally {
    await service.stop();
  }
}

async function postEvent(url: string, id: string): Promise<number> {
  const body = JSON.stringify({
    id,
    eventType: 'transaction.completed',
    data: { transactionId: 't-1', amount: 350 },
    timestamp: new Date().toISOString(),
  });
  const signature = createHmac('sha512', SECRET).update(body).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-webhook-signature': `sha512=${signature}`,
    connection: 'close',
  };
  const response = await fetch(`${url}/webhooks/payments`, { method: 'POST', body, headers });
  await response.arrayBuffer();
  return response.status;
}
