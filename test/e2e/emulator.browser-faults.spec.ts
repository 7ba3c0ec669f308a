import { expect, it, jest } from '@jest/globals';
import type { EmulatorInputError, PaymentsEmulator } from 'payments-emulator';
import { signDelivery } from 'payments-emulator';
import type { Page } from 'playwright-core';
import { describeInBrowser } from '../support/browser.js';
import { eventually } from '../support/eventually.js';
import { get, getToken, json, requestToken, sandbox } from './emulator.client.js';
import type { Receiver } from './emulator.receiver.js';
import { stageEmulator } from './emulator.stage.js';

jest.setTimeout(60_000);

type Plan = Record<string, Record<string, unknown>>;

const ANSWER: [string, unknown][] = [
  ['slow', { ms: 2000 }],
  ['reset', { when: 'before' }],
  ['unauthorized', {}],
  ['error', { status: 503 }],
  ['rateLimit', { retryAfter: 1 }],
  ['truncate', {}],
  ['oversize', { bytes: 16_777_216, encoding: 'identity' }],
];

/** Every fault, and what its switch sets before anybody touches its numbers. */
const FAULTS: Record<string, [string, unknown][]> = {
  delivery: [
    ['drop', {}],
    ['duplicate', { copies: 1 }],
    ['delay', { ms: 2000 }],
    ['reorder', { window: 4, maxWaitMs: 1000 }],
    ['tamperBody', { how: 'value' }],
    ['tamperSignature', { how: 'digit' }],
    ['oldSecret', {}],
    ['redeliver', [1000, 5000, 30_000]],
  ],
  token: [
    ...ANSWER,
    ['lifetime', { seconds: 20 }],
    ['expiresIn', { value: 'soon' }],
    ['sameToken', {}],
  ],
  api: ANSWER,
};

let receiver: Receiver;
let emulator: PaymentsEmulator;

stageEmulator((stage) => ({ receiver, emulator } = stage));

const plan = () => emulator.faults() as Plan;
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).click();

/** The row of a fault: its switch and its numbers. */
function row(page: Page, station: string, fault: string) {
  const control = page.locator(`[role=switch][aria-describedby="${station}-${fault}-what"]`);
  const item = page.getByRole('listitem').filter({ has: control });
  return {
    switch: control,
    item,
    /** Types a number as a person does, and leaves the field. */
    async set(label: string, text: string): Promise<void> {
      if ((await item.locator('details[open]').count()) === 0)
        await item.locator('summary').click();
      await item.getByLabel(label).fill(text);
      await item.getByLabel(label).press('Tab');
    },
  };
}

async function openFaults(page: Page): Promise<void> {
  await page.goto(`${emulator.baseUrl}/emulator`);
  await page.getByRole('region', { name: 'Faults of default' }).waitFor();
  // What comes later pushes the switches down.
  await eventually(async () => expect(await page.getByText('Loading…').count()).toBe(0));
}

describeInBrowser('a fault, on the page,', (browser) => {
  it('has a switch, whichever the emulator knows', async () => {
    const page = await browser().page();
    await openFaults(page);
    let known = 0;
    for (const station of ['delivery', 'token', 'api']) {
      let problem = '';
      try {
        emulator.setFaults({ [station]: { nope: {} } });
      } catch (error) {
        problem = (error as EmulatorInputError).message;
      }
      const names = /there is (.+)$/.exec(problem)?.[1]?.split(', ') ?? [];
      expect(new Set(names)).toEqual(new Set(FAULTS[station]?.map(([name]) => name)));
      for (const name of names) expect(await row(page, station, name).switch.count()).toBe(1);
      known += names.length;
    }
    expect(await page.getByRole('switch').count()).toBe(known);
  });

  it.each(Object.entries(FAULTS))(
    'of the station %s is switched on and off, is seen to be on, and nothing else changes',
    async (station, faults) => {
      const others = { [station === 'api' ? 'token' : 'api']: { truncate: { next: 3 } } };
      emulator.setFaults(others);
      const page = await browser().page();
      await openFaults(page);
      for (const [name, value] of faults) {
        const { switch: control, item } = row(page, station, name);
        expect([name, await control.isChecked()]).toEqual([name, false]);
        await control.click();
        await item.getByText('on', { exact: true }).waitFor();
        expect(plan()).toEqual({ ...others, [station]: { [name]: value } });
        await page.getByText('2 faults on for default').waitFor();
        await control.click();
        await page.getByText('1 fault on for default').waitFor();
        expect([name, plan()]).toEqual([name, others]);
        expect([name, await control.isChecked()]).toEqual([name, false]);
      }
    },
  );

  it('strikes deliveries as it says: drop, duplicate, tampering, and again when it is off', async () => {
    const page = await browser().page();
    await openFaults(page);
    const fits = (index: number) => {
      const { body, headers } = receiver.received[index] ?? receiver.first;
      return headers['x-webhook-signature'] === signDelivery(body, emulator.company.webhookSecret);
    };
    const under = async (fault: string): Promise<void> => {
      receiver.received.length = 0;
      const { switch: control, item } = row(page, 'delivery', fault);
      await control.click();
      await item.getByText('on', { exact: true }).waitFor();
      const before = emulator.deliveries().length;
      await press(page, 'Send a test webhook');
      await eventually(() => expect(emulator.deliveries().length).toBeGreaterThan(before));
      await emulator.idle();
      await control.click();
      await page.getByText('No fault is on').waitFor();
    };
    await under('drop');
    expect(receiver.received).toHaveLength(0);
    await page.getByRole('button', { name: /dropped .*webhook\.test/ }).waitFor();
    await under('duplicate');
    expect(receiver.received).toHaveLength(2);
    for (const fault of ['tamperBody', 'tamperSignature', 'oldSecret']) {
      await under(fault);
      expect([fault, receiver.received.length, fits(0)]).toEqual([fault, 1, false]);
    }
    receiver.received.length = 0;
    await press(page, 'Send a test webhook');
    await eventually(() => expect(receiver.received).toHaveLength(1));
    expect(fits(0)).toBe(true);
  });

  it('strikes the token endpoint and the calls as it says', async () => {
    const page = await browser().page();
    await openFaults(page);
    const on = async (station: string, fault: string): Promise<void> => {
      await row(page, station, fault).switch.click();
      await row(page, station, fault).item.getByText('on', { exact: true }).waitFor();
    };
    const off = async (): Promise<void> => {
      await press(page, 'All faults off');
      await page.getByText('No fault is on').waitFor();
      expect(plan()).toEqual({});
    };
    const { transactionId } = emulator.createPayout({ amount: 1, externalReference: 'x' });
    const token = await getToken(emulator);
    const call = () => get(`${emulator.baseUrl}/v1/transactions/${transactionId}`, token);

    await on('token', 'error');
    expect((await requestToken(sandbox(emulator))).status).toBe(503);
    await off();
    await on('token', 'rateLimit');
    expect((await requestToken(sandbox(emulator))).status).toBe(429);
    await off();
    await on('token', 'lifetime');
    expect(await json(requestToken(sandbox(emulator)))).toMatchObject({ expires_in: '20' });
    await off();
    await on('api', 'unauthorized');
    expect((await call()).status).toBe(401);
    await off();
    await on('api', 'reset');
    await expect(call()).rejects.toThrow();
    await off();
    await on('api', 'truncate');
    await expect(call().then((response) => response.text())).rejects.toThrow();
    await off();
    await on('api', 'oversize');
    await row(page, 'api', 'oversize').set('bytes', '5000');
    await eventually(() => expect(plan()['api']).toMatchObject({ oversize: { bytes: 5000 } }));
    expect((await (await call()).text()).length).toBe(5000);
    await off();
    expect((await call()).status).toBe(200);
  });

  it('takes its numbers at once while it is on, and with the switch while it is off', async () => {
    const page = await browser().page();
    await openFaults(page);
    const duplicate = row(page, 'delivery', 'duplicate');
    await duplicate.set('further copies', '3');
    await duplicate.set('only the next … times', '2');
    expect(plan()).toEqual({});
    await duplicate.switch.click();
    await duplicate.item.getByText('on', { exact: true }).waitFor();
    expect(plan()).toEqual({ delivery: { duplicate: { copies: 3, next: 2 } } });
    await duplicate.set('only the next … times', '');
    await duplicate.set('probability, 0 to 1', '0.25');
    await eventually(() =>
      expect(plan()).toEqual({ delivery: { duplicate: { copies: 3, probability: 0.25 } } }),
    );
    const delay = row(page, 'delivery', 'delay');
    await delay.set('milliseconds, or min-max', '10-20');
    await delay.switch.click();
    const schedule = row(page, 'delivery', 'redeliver');
    await schedule.set('waits in milliseconds', '5, 10');
    await schedule.switch.click();
    const odd = row(page, 'token', 'expiresIn');
    await odd.set('JSON', '');
    await odd.switch.click();
    await odd.item.getByText('on', { exact: true }).waitFor();
    const tamper = row(page, 'delivery', 'tamperSignature');
    await tamper.switch.click();
    await tamper.item.locator('summary').click();
    await tamper.item.getByLabel('how').selectOption('missing');
    await eventually(() => {
      expect(plan()).toEqual({
        delivery: {
          duplicate: { copies: 3, probability: 0.25 },
          delay: { ms: [10, 20] },
          redeliver: [5, 10],
          tamperSignature: { how: 'missing' },
        },
        token: { expiresIn: {} },
      });
    });
  });

  it('tells what is wrong with a number, and stays as it was', async () => {
    const page = await browser().page();
    await openFaults(page);
    const duplicate = row(page, 'delivery', 'duplicate');
    const { switch: control, item } = duplicate;
    await control.click();
    await item.getByText('on', { exact: true }).waitFor();
    await duplicate.set('further copies', '1000');
    await item.getByRole('alert').getByText('must be a whole number of copies').waitFor();
    expect(plan()).toEqual({ delivery: { duplicate: { copies: 1 } } });
    await duplicate.set('further copies', '2');
    await item.getByRole('alert').waitFor({ state: 'detached' });
    expect(plan()).toEqual({ delivery: { duplicate: { copies: 2 } } });
    const wrong = row(page, 'token', 'lifetime');
    await wrong.set('seconds', 'long');
    await wrong.switch.click();
    await wrong.item.getByRole('alert').getByText('must be a whole number of seconds').waitFor();
    expect(await wrong.switch.isChecked()).toBe(false);
  });

  it('says when it is used up', async () => {
    emulator.setFaults({ delivery: { drop: { next: 1 } } });
    const page = await browser().page();
    await openFaults(page);
    await row(page, 'delivery', 'drop').item.getByText('on', { exact: true }).waitFor();
    await press(page, 'Send a test webhook');
    await row(page, 'delivery', 'drop').item.getByText('used up', { exact: true }).waitFor();
    await press(page, /Drop \(used up\).*switch off/);
    await page.getByText('No fault is on').waitFor();
    expect(plan()).toEqual({});
  });

  it("is of one company: another's stay as they are", async () => {
    emulator.createCompany({ companyId: 'other' });
    emulator.setFaults({ delivery: { drop: {} } });
    const page = await browser().page();
    await openFaults(page);
    await page.getByLabel('Company to act for').selectOption('other');
    await page.getByText('No fault is on for other').waitFor();
    await row(page, 'api', 'error').switch.click();
    await page.getByText('1 fault on for other').waitFor();
    expect(emulator.faults('other')).toEqual({ api: { error: { status: 503 } } });
    await press(page, 'All faults off');
    await page.getByText('No fault is on for other').waitFor();
    expect(plan()).toEqual({ delivery: { drop: {} } });
  });
});
