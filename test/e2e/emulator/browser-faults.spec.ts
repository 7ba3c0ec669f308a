import { expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import { press } from '../../support/emulator/delivery-log-page.js';
import { faultSwitch, openFaults } from '../../support/emulator/fault-switches.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { eventually } from '../../support/time/waiting.js';

type Plan = Record<string, Record<string, unknown>>;

/** A fault as `GET /emulator/faults` describes it. */
interface Fault {
  only?: true | Field;
  fields?: Record<string, Field>;
}

interface Field {
  kind: string;
  value?: string;
}

/** The value that the switch of a fault sets if nobody changes its fields. */
function shownFirst({ only, fields = {} }: Fault): unknown {
  if (only === true) return true;
  if (only !== undefined) return only.value?.split(', ').map(Number);
  const values = Object.entries(fields).flatMap(([name, { kind, value }]) => {
    if (value === undefined) return [];
    return [[name, kind === 'json' || /^\d+$/.test(value) ? JSON.parse(value) : value]];
  });
  return Object.fromEntries(values) as unknown;
}

let emulator: PaymentsEmulator;

useEmulator((started) => ({ emulator } = started));

const plan = () => emulator.faults() as Plan;

describeInBrowser('fault switches on the page', (browser) => {
  it.each(['delivery', 'token', 'api'])(
    'the fault switches of the target %s explain each fault, switch it on and off, and show its state',
    async (target) => {
      const response = await fetch(`${emulator.baseUrl}/emulator/faults`);
      const targets = (await response.json()) as Record<string, { faults: Record<string, Fault> }>;
      const others = { [target === 'api' ? 'token' : 'api']: { truncate: { next: 3 } } };
      emulator.setFaults(others);
      const page = await browser().page();
      await openFaults(page, emulator);
      const all = Object.values(targets).flatMap(({ faults }) => Object.keys(faults));
      expect(await page.getByRole('switch').count()).toBe(all.length);
      for (const [name, fault] of Object.entries(targets[target]!.faults)) {
        const { switch: control, item } = faultSwitch(page, target, name);
        const sentence = await page.locator(`[id="${target}-${name}-description"]`).textContent();
        expect([name, sentence]).toEqual([name, expect.stringMatching(/^[A-Z][^.]{15,120}\.$/)]);
        expect([name, await control.isChecked()]).toEqual([name, false]);
        await control.click();
        await item.getByText('on', { exact: true }).waitFor();
        expect(plan()).toEqual({ ...others, [target]: { [name]: shownFirst(fault) } });
        await page.getByText('2 faults on for company default').waitFor();
        await control.click();
        await page.getByText('1 fault on for company default').waitFor();
        expect([name, plan()]).toEqual([name, others]);
        expect([name, await control.isChecked()]).toEqual([name, false]);
      }
    },
  );

  it('the fault switches send their settings at once if the fault is on, and otherwise when the fault is switched on', async () => {
    const page = await browser().page();
    await openFaults(page, emulator);
    const duplicate = faultSwitch(page, 'delivery', 'duplicate');
    await duplicate.set('number of copies', '3');
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
    const delay = faultSwitch(page, 'delivery', 'delay');
    await delay.set('milliseconds, or min-max', '10-20');
    await delay.switch.click();
    const schedule = faultSwitch(page, 'delivery', 'redeliver');
    await schedule.set('waits in milliseconds', '5, 10');
    await schedule.switch.click();
    const odd = faultSwitch(page, 'token', 'expiresIn');
    await odd.set('JSON', '');
    await odd.switch.click();
    await odd.item.getByText('on', { exact: true }).waitFor();
    const tamper = faultSwitch(page, 'delivery', 'tamperSignature');
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

  it('the fault switches do not send the former value of a field while the page loads the new value', async () => {
    const page = await browser().page();
    await openFaults(page, emulator);
    const duplicate = faultSwitch(page, 'delivery', 'duplicate');
    await duplicate.set('only the next … times', '2');
    await duplicate.switch.click();
    await duplicate.item.getByText('on', { exact: true }).waitFor();
    const loaded = Promise.withResolvers<void>();
    await page.route('**/emulator/overview*', async (route) => {
      await loaded.promise;
      await route.continue();
    });
    const responded = page.waitForResponse((response) => response.request().method() === 'PUT');
    await duplicate.set('only the next … times', '');
    await responded;
    await duplicate.set('probability, 0 to 1', '0.25');
    loaded.resolve();
    await eventually(() =>
      expect(plan()).toMatchObject({ delivery: { duplicate: { probability: 0.25 } } }),
    );
    expect(plan()).not.toMatchObject({ delivery: { duplicate: { next: 2 } } });
  });

  it('the fault switches show an error for an invalid setting and keep their state', async () => {
    const page = await browser().page();
    await openFaults(page, emulator);
    const duplicate = faultSwitch(page, 'delivery', 'duplicate');
    const { switch: control, item } = duplicate;
    await control.click();
    await item.getByText('on', { exact: true }).waitFor();
    await duplicate.set('number of copies', '1000');
    await item.getByRole('alert').getByText('must be a whole number of copies').waitFor();
    expect(plan()).toEqual({ delivery: { duplicate: { copies: 1 } } });
    await duplicate.set('number of copies', '2');
    await item.getByRole('alert').waitFor({ state: 'detached' });
    expect(plan()).toEqual({ delivery: { duplicate: { copies: 2 } } });
    const wrong = faultSwitch(page, 'token', 'lifetime');
    await wrong.set('seconds', 'long');
    await wrong.switch.click();
    await wrong.item.getByRole('alert').getByText('must be a whole number of seconds').waitFor();
    expect(await wrong.switch.isChecked()).toBe(false);
  });

  it('the fault switches show that a fault with a limited number of uses is used up', async () => {
    emulator.setFaults({ delivery: { drop: { next: 1 } } });
    const page = await browser().page();
    await openFaults(page, emulator);
    await faultSwitch(page, 'delivery', 'drop').item.getByText('on', { exact: true }).waitFor();
    emulator.sendEvent({ eventType: 'x.y' });
    await faultSwitch(page, 'delivery', 'drop')
      .item.getByText('used up', { exact: true })
      .waitFor();
    await press(page, /Drop \(used up\).*switch off/);
    await page.getByText('No fault is on').waitFor();
    expect(plan()).toEqual({});
  });

  it('the fault switches change the faults of one company only', async () => {
    emulator.createCompany({ companyId: 'other' });
    emulator.setFaults({ delivery: { drop: {} } });
    const page = await browser().page();
    await openFaults(page, emulator);
    await page.getByRole('combobox', { name: 'Company' }).selectOption('other');
    await page.getByText('No fault is on for company other').waitFor();
    await faultSwitch(page, 'api', 'error').switch.click();
    await page.getByText('1 fault on for company other').waitFor();
    expect(emulator.faults('other')).toEqual({ api: { error: { status: 503 } } });
    await press(page, 'All faults off');
    await page.getByText('No fault is on for company other').waitFor();
    expect(plan()).toEqual({ delivery: { drop: {} } });
  });
});
