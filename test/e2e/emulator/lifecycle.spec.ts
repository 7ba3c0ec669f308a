import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:net';
import { Logger } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  EmulatorError,
  EmulatorInputError,
  ManualClock,
  PaymentsEmulator,
} from 'payments-emulator';
import { get, getToken, sandbox } from '../../support/emulator/api-client.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { until } from '../../support/time/waiting.js';

const payment = { amount: 1500, externalReference: 'order-77' };

describe('PaymentsEmulator.start', () => {
  it('PaymentsEmulator.start() starts two hosts on free ports, with one company', async () => {
    await using emulator = await PaymentsEmulator.start();
    expect(emulator.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(emulator.productionBaseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(emulator.productionBaseUrl).not.toBe(emulator.baseUrl);
    expect(emulator.companies()).toEqual([emulator.company]);
    expect(emulator.company).toMatchObject({
      companyId: 'default',
      clientId: expect.any(String),
      clientSecret: expect.any(String),
      webhookSecret: expect.any(String),
      production: { clientId: expect.any(String), clientSecret: expect.any(String) },
      webhook: { url: null, active: true },
    });
  });

  it('PaymentsEmulator.start() uses the given credentials', async () => {
    const given = { clientId: 'i', clientSecret: 's', webhookSecret: 'w', companyId: 'acme' };
    await using emulator = await PaymentsEmulator.start(given);
    expect(emulator.company).toMatchObject(given);
  });

  it('PaymentsEmulator.start() generates random credentials, and the same credentials for the same seed', async () => {
    const companyOf = async (seed?: string) => {
      await using emulator = await PaymentsEmulator.start({ seed });
      return emulator.company;
    };
    expect(await companyOf()).not.toEqual(await companyOf());
    expect(await companyOf('a')).toEqual(await companyOf('a'));
    expect(await companyOf('a')).not.toEqual(await companyOf('b'));
  });

  it('PaymentsEmulator.start() rejects invalid options', async () => {
    await expect(PaymentsEmulator.start({ port: -1 })).rejects.toThrow(EmulatorInputError);
  });

  it('PaymentsEmulator.start() rejects if a port is in use, and closes the other host', async () => {
    await using first = await PaymentsEmulator.start();
    const productionPort = Number(new URL(first.productionBaseUrl).port);
    const servers: Server[] = [];
    const note = (message: unknown) => void servers.push((message as { server: Server }).server);
    subscribe('tracing:net.server.listen:asyncStart', note);
    await expect(PaymentsEmulator.start({ productionPort })).rejects.toThrow('EADDRINUSE');
    unsubscribe('tracing:net.server.listen:asyncStart', note);
    expect(servers.map((server) => server.listening)).toEqual([false, false]);
  });

  it("PaymentsEmulator.start() restores Nest's logger after concurrent starts", async () => {
    const lines: unknown[] = [];
    const keep = (message: unknown) => void lines.push(message);
    Logger.overrideLogger({ log: keep, error: keep, warn: keep });
    const emulators = await Promise.all([1, 2, 3].map(() => PaymentsEmulator.start()));
    expect(lines).toEqual([]);
    // Lines that were suppressed during the start are logged again.
    new Logger('NestFactory').log('the application under test');
    expect(lines).toEqual(['the application under test']);
    await Promise.all(emulators.map((emulator) => emulator.close()));
  });

  it("PaymentsEmulator.start() restores Nest's original logger object, so that wrappers do not accumulate", async () => {
    const found = { log: () => undefined, error: () => undefined, warn: () => undefined };
    Logger.overrideLogger(found);
    await using _emulator = await PaymentsEmulator.start();
    expect(Logger['staticInstanceRef']).toBe(found);
  });

  it('PaymentsEmulator.start() shares no state with another emulator in the same process', async () => {
    await using one = await PaymentsEmulator.start();
    await using other = await PaymentsEmulator.start();
    one.createCompany({ companyId: 'acme' });
    one.createStkPush(payment);
    expect(other.companies()).toHaveLength(1);
    expect(other.transactions()).toEqual([]);
  });

  it('PaymentsEmulator.start() limits the number of transactions and companies', async () => {
    await using emulator = await PaymentsEmulator.start({ maxTransactions: 2, maxCompanies: 2 });
    const ids = [1, 2, 3].map(() => emulator.createStkPush(payment).transactionId);
    expect(emulator.transactions().map((each) => each.transactionId)).toEqual(ids.slice(1));
    emulator.createCompany();
    expect(() => emulator.createCompany()).toThrow(EmulatorError);
    expect(() => emulator.createCompany()).toThrow('maxCompanies');
  });

  it('the emulator calls onDelivery after each attempt, and logs an error that onDelivery throws', async () => {
    await using receiver = await WebhookReceiver.start();
    const calls: string[] = [];
    await using emulator = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      onDelivery: ({ eventType, state }) => {
        calls.push(`${eventType} ${state}`);
        if (eventType === 'one') throw new Error('listener failed');
      },
    });
    const logged: unknown[] = [];
    const keep = (message: unknown) => void logged.push(message);
    Logger.overrideLogger({ log: keep, error: keep, warn: keep });
    emulator.sendEvent({ eventType: 'one' });
    await emulator.idle();
    emulator.sendEvent({ eventType: 'two' });
    await emulator.idle();
    expect(calls).toEqual(['one delivered', 'two delivered']);
    expect(logged).toEqual([
      'The option onDelivery threw an error, which does not affect the delivery: listener failed',
    ]);
  });
});

describe('reset', () => {
  it('reset() restores the state that the emulator had at its start, with the same addresses and credentials', async () => {
    await using receiver = await WebhookReceiver.start();
    await using emulator = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      faults: { api: { error: { next: 1 } } },
    });
    const { company, baseUrl } = emulator;
    emulator.createCompany();
    emulator.rotateClientSecret();
    emulator.rotateWebhookSecret();
    emulator.setWebhook({ active: false });
    emulator.setFaults({});
    emulator.complete(emulator.createStkPush(payment).transactionId);
    await emulator.reset();
    expect(emulator.company).toEqual(company);
    expect(emulator.baseUrl).toBe(baseUrl);
    expect(emulator.companies()).toHaveLength(1);
    expect(emulator.transactions()).toEqual([]);
    expect(emulator.deliveries()).toEqual([]);
    expect(emulator.faults()).toEqual({ api: { error: { next: 1 } } });
  });

  it('reset() removes the faults of created companies, also if their ids are used again', async () => {
    await using emulator = await PaymentsEmulator.start();
    emulator.createCompany({ companyId: 'acme' });
    emulator.setFaults({ delivery: { drop: {} } }, 'acme');
    await emulator.reset();
    expect(() => emulator.faults('acme')).toThrow('there is no company acme');
    emulator.createCompany({ companyId: 'acme' });
    expect(emulator.faults('acme')).toEqual({});
  });

  it('reset() revokes all earlier tokens', async () => {
    await using emulator = await PaymentsEmulator.start({ seed: 'a', clock: new ManualClock() });
    const before = await getToken(emulator);
    await emulator.reset();
    const url = `${emulator.baseUrl}/v1/transactions/none`;
    expect((await get(url, before)).status).toBe(401);
    expect((await get(url, await getToken(emulator))).status).toBe(404);
  });

  it('after reset(), an emulator with a seed generates the same ids again', async () => {
    await using emulator = await PaymentsEmulator.start({ seed: 'a' });
    const { transactionId } = emulator.createStkPush(payment);
    await emulator.reset();
    expect(emulator.createStkPush(payment).transactionId).toBe(transactionId);
  });

  it('reset() returns new ids, but the same credentials, if freshIds is set', async () => {
    await using emulator = await PaymentsEmulator.start({ seed: 'a', freshIds: true });
    const ids = () => {
      const { transactionId } = emulator.createStkPush(payment);
      return [transactionId, emulator.complete(transactionId).event.id];
    };
    const [before, { company }] = [ids(), emulator];
    await emulator.reset();
    const after = ids();
    expect(new Set([...before, ...after]).size).toBe(4);
    expect(emulator.company).toEqual(company);
  });

  it('reset() cancels running deliveries and their redeliveries', async () => {
    await using receiver = await WebhookReceiver.start();
    await using emulator = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      redeliver: [3_600_000],
    });
    const ended: string[] = [];
    receiver.respond = () => ended.push('arrived');
    emulator.sendEvent({ eventType: 'x' });
    await until(() => ended.length === 1);
    await emulator.reset();
    await emulator.idle();
    expect(emulator.deliveries()).toEqual([]);
    expect(receiver.received).toHaveLength(1);
  });
});

describe('close', () => {
  it('close() stops listening and cancels deliveries; it is idempotent', async () => {
    await using receiver = await WebhookReceiver.start();
    const emulator = await PaymentsEmulator.start({ webhookUrl: receiver.url });
    receiver.respond = () => undefined;
    emulator.sendEvent({ eventType: 'x' });
    await until(() => receiver.received.length === 1);
    await Promise.all([emulator.close(), emulator.close()]);
    expect(emulator.deliveries().map(({ state }) => state)).toEqual(['cancelled']);
    await expect(fetch(`${emulator.baseUrl}/emulator`)).rejects.toThrow();
    await expect(fetch(`${emulator.productionBaseUrl}/emulator`)).rejects.toThrow();
    await expect(emulator.reset()).rejects.toThrow('has been closed');
  });

  it('close() does not wait for a response that a fault delays', async () => {
    const clock = new ManualClock();
    const emulator = await PaymentsEmulator.start({ clock });
    emulator.setFaults({ token: { slow: { ms: 3_600_000 } } });
    const asked = getToken(emulator, sandbox(emulator)).catch(() => 'gone');
    await until(() => clock.pending === 1);
    await emulator.close();
    await asked;
  });
});
