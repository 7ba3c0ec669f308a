import { describe, expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { commandInProcess } from '../../support/emulator/emulator-command.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started));

/** Runs a command of the running emulator. */
const run = (...args: string[]) => commandInProcess(...args, '--url', emulator.baseUrl);

describe('payments-emulator webhooks, complete, decline and fault', () => {
  it('payments-emulator webhooks switches an outage of deliveries on and off, also of another company', async () => {
    emulator.createCompany({ companyId: 'other' });
    expect(await run('webhooks', 'off')).toEqual({ code: 0, out: 'webhooks     off\n', err: '' });
    expect(emulator.faults()).toEqual({ delivery: { off: true } });
    await run('webhooks', 'off', '--company', 'other');
    expect((await run('webhooks', 'on')).code).toBe(0);
    expect([emulator.faults(), emulator.faults('other')]).toEqual([
      {},
      { delivery: { off: true } },
    ]);
  });

  it('payments-emulator complete and decline end a transaction, and fail for one that has ended', async () => {
    const { transactionId: paid } = emulator.createStkPush(payment);
    const { transactionId: declined } = emulator.createStkPush(payment);
    expect(await run('complete', paid)).toMatchObject({ code: 0, out: `completed    ${paid}\n` });
    expect(await run('decline', declined)).toMatchObject({
      code: 0,
      out: `declined     ${declined}\n`,
    });
    expect(emulator.transactions().map(({ status }) => status)).toEqual(['complete', 'failed']);
    expect(await run('decline', paid)).toEqual({
      code: 1,
      out: '',
      err: `payments-emulator: transaction ${paid} is already complete\n`,
    });
  });

  it('payments-emulator complete --after completes a transaction later', async () => {
    const { transactionId, createdAt } = emulator.createStkPush(payment);
    const { code, out } = await run('complete', transactionId, '--after', '24h');
    expect({ code, out }).toEqual({ code: 0, out: `completes    ${transactionId} in 24h\n` });
    const { status, completesAt = '' } = emulator.transaction(transactionId);
    expect(status).toBe('pending');
    expect(Date.parse(completesAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(86_400_000);
  });

  it('payments-emulator fault sets and removes one fault', async () => {
    expect((await run('fault', 'api.notFound', '{"forMs":60000}')).code).toBe(0);
    expect((await run('fault', 'api.otherStatus', '{"next":2}')).code).toBe(0);
    expect(emulator.faults()).toEqual({
      api: { notFound: { forMs: 60_000 }, otherStatus: { next: 2 } },
    });
    expect(await run('fault', 'api.notFound', 'off')).toMatchObject({
      code: 0,
      out: 'fault        api.notFound off\n',
    });
    expect(emulator.faults()).toEqual({ api: { otherStatus: { next: 2 } } });
    expect(await run('fault', 'api.none', '{}')).toMatchObject({
      code: 1,
      err: expect.stringContaining('api.none is unknown; known are slow'),
    });
  });

  it.each([
    [['webhooks'], 'webhooks takes on or off'],
    [['webhooks', 'maybe'], 'webhooks takes on or off, not "maybe"'],
    [['complete'], 'complete takes one transaction id'],
    [['decline', 'a', 'b'], 'decline takes one transaction id'],
    [['decline', 'a', '--after', '1s'], 'decline takes no --after'],
    [['complete', 'a', '--after', 'soon'], '--after takes a time such as 30s, 10m or 24h'],
    [['fault', 'api.slow'], 'fault takes a name, and JSON or off'],
    [['fault', 'slow', '{}'], 'fault takes a name such as api.notFound, not "slow"'],
    [['fault', 'api.slow', 'on'], 'fault takes JSON'],
    [['webhooks', 'off', '--nope'], "Unknown option '--nope'"],
  ])('payments-emulator %j exits with 2 and explains the mistake', async (args, message) => {
    const { code, out, err } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
    expect(err).toContain(`payments-emulator ${args[0]} --help lists the flags.`);
    expect(emulator.faults()).toEqual({});
  });

  it.each(['webhooks', 'complete', 'decline', 'fault'])(
    'payments-emulator %s --help lists the commands and exits with 0',
    async (command) => {
      const { code, out } = await run(command, '--help');
      expect(code).toBe(0);
      expect(out).toContain(`payments-emulator ${command}`);
    },
  );
});
