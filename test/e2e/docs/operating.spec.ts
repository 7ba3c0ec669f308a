import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

/** The steps of the section "Practice", with the code of the guide. Prints the results as JSON. */
const PRACTICE = `
import { NestFactory } from '@nestjs/core';
import { PaymentInbox } from 'nestjs-payments';
import { deliver, paymentEvent, settled } from 'nestjs-payments/testing';
import { AppModule } from './app.module.js';
import { InboxOperator } from './inbox.operator.js';

const broken = await NestFactory.create(AppModule, { logger: false });
const event = paymentEvent('transaction.completed');
await deliver(broken, event);
await settled(broken);
const dead = await new InboxOperator(broken.get(PaymentInbox)).dead();
await broken.close();

process.env['LEDGER'] = 'up';
const fixed = await NestFactory.create(AppModule, { logger: false });
await fixed.init();
const inbox = fixed.get(PaymentInbox);
const redriven = await new InboxOperator(inbox).redriveOne(event.id);
await settled(fixed);
const [delivery] = (await inbox.get(event.id))!.deliveries;
await fixed.close();

const history = delivery!.history.map(({ outcome }) => outcome);
console.log(JSON.stringify({ id: event.id, dead, redriven, state: delivery!.state, history }));
`;

describe('docs/operating.md', () => {
  let program: ReadmeProgram;
  beforeAll(() => {
    program = new ReadmeProgram('docs/operating.md', { 'practice.ts': PRACTICE });
  });
  afterAll(() => program.remove());

  it('docs/operating.md shows an application whose dead letter succeeds after the fix and a redrive', async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(program.folder, 'practice.js')],
      {
        cwd: program.folder,
        env: {
          ...process.env,
          PAYMENTS_BASE_URL: 'http://127.0.0.1:9',
          PAYMENTS_CLIENT_ID: 'client',
          PAYMENTS_CLIENT_SECRET: 'secret',
          PAYMENTS_WEBHOOK_SECRET: 'whsec_test',
        },
      },
    );
    const { id, ...result } = JSON.parse(stdout) as { id: string };
    expect(result).toEqual({
      dead: [`${id} transaction.completed#markPaid (1): Error: the ledger is down`],
      redriven: { events: 1, deliveries: 1 },
      state: 'done',
      history: ['failed', 'done'],
    });
  });
});
