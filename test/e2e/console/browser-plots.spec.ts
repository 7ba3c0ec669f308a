import { expect, it } from '@jest/globals';
import { describeInBrowser } from '../../support/browser/test-browser.js';
import {
  ConsoleApplication,
  changed,
  closedMinutes,
} from '../../support/console/console-browser.js';
import { isPaintedIn } from '../../support/browser/page-appearance.js';
import { eventually } from '../../support/time/waiting.js';

describeInBrowser('the plots of the inbox console', (browser) => {
  it('the console repaints the plots if the color scheme changes, and describes them as text and table', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser(), '', { colorScheme: 'light' });
    await closedMinutes(page, (place) => (place === 5 ? { received: 1, done: 2 } : {}));
    await page.reload();
    const plot = page.getByRole('img', {
      name: /^Deliveries per minute: done at most 2, dead at most 0. last hour: 2 done, 0 dead/,
    });
    await plot.waitFor();
    // From now on, only a change of the color scheme repaints the plots.
    app.session.open = false;
    await page.getByText('You are not signed in any more.').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await eventually(async () => expect(await isPaintedIn(page, 'i.received')).toBe(true));
    }
    await page.getByText('As a table').nth(1).click();
    expect(await page.locator('figure table').first().textContent()).toContain('dead');
  });

  it('the console plots a day per 15 minutes: counts by their mean, times by the slowest minute', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser(), '?minutes=1440');
    await closedMinutes(page, () => ({}));
    await page.reload();
    await page.getByText('Events per minute, means of 15 minutes').waitFor();
    // The data start at 00:01, so that the first quarter has 14 minutes.
    const points = await page.evaluate<Record<string, unknown>[]>(`(async () => {
      const { grouped } = await import(document.baseURI.replace(/#.*/, '') + 'assets/activity.js');
      return grouped(Array.from({ length: 1440 }, (_, index) => ({
        startsAt: new Date(Date.UTC(2026, 0, 1, 0, index + 1)).toISOString(),
        received: index < 14 ? 2 : index === 14 ? 30 : 0, done: 0, failed: 0, dead: 0,
        p50Ms: null, p95Ms: index < 14 ? index : null,
      })));
    })()`);
    expect(points).toHaveLength(97);
    expect(points[0]).toMatchObject({
      startsAt: '2026-01-01T00:00:00.000Z',
      received: 2,
      p95Ms: 13,
    });
    expect(points[1]).toMatchObject({
      startsAt: '2026-01-01T00:15:00.000Z',
      received: 2,
      p95Ms: null,
    });
  });

  it('the console plots one unit per plot, with the totals of the range and the minutes that are not counted', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser());
    await closedMinutes(page, (place) => ({
      received: place < 10 ? 3 : 0,
      done: place < 10 ? 6 : 0,
      failed: place === 20 ? 4 : 0,
      dead: place === 20 ? 1 : 0,
      p50Ms: place === 30 ? 20 : null,
      p95Ms: place === 40 ? 5000 : null,
    }));
    await page.reload();
    await page.locator('figure').first().waitFor();
    expect(await page.locator('figcaption').allInnerTexts()).toEqual([
      expect.stringMatching(/^Events per minute\s+last hour: 30 received$/),
      expect.stringMatching(/^Deliveries per minute\s+last hour: 60 done, 1 dead$/),
      expect.stringMatching(/^Failed attempts per minute\s+last hour: 4 failed$/),
      expect.stringMatching(/^Time from receipt to done\s+last hour: p95 ≤ 5 s, p50 ≤ 20 ms$/),
    ]);
    await page.getByRole('button', { name: '15 min' }).click();
    await page.getByText('last 15 min: 0 failed').waitFor();
    await page.reload();
    await page.getByText('last 15 min: 30 received').waitFor();
    expect(await page.getByText('not counted yet', { exact: true }).count()).toBe(4);
  });

  it('the console hatches the time after the last closed minute, and draws no line there', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), '?minutes=15');
    await changed(page, 'overview', (overview) => ({
      ...overview,
      now: '2026-11-20T08:20:00.000Z',
      completeFrom: '2026-11-20T08:00:00.000Z',
      activity: Array.from({ length: 15 }, (_, minute) => ({
        startsAt: new Date(Date.UTC(2026, 10, 20, 8, minute)).toISOString(),
        received: 5,
        done: 0,
        failed: 0,
        dead: 0,
        p50Ms: null,
        p95Ms: null,
      })),
    }));
    await page.reload();
    await page.locator('figure').first().waitFor();
    /** Share of the pixels between two columns that have the colour of an element of the key. */
    const share = (element: string, from: number, to: number) =>
      page.evaluate<number>(`(() => {
        const canvas = document.querySelector('canvas');
        const [left, top] = [${from} * canvas.width, 0.1 * canvas.height];
        const [width, height] = [${to - from} * canvas.width, 0.5 * canvas.height];
        const { data } = canvas.getContext('2d').getImageData(left, top, width, height);
        const { color } = getComputedStyle(document.querySelector('.key ${element}'));
        const wanted = color.match(/\\d+/g).map(Number);
        const pixels = Array.from({ length: data.length / 4 }, (_, at) => at * 4);
        return pixels.filter((at) => data[at + 3] > 0 &&
          wanted.every((part, index) => Math.abs(data[at + index] - part) < 3)).length / pixels.length;
      })()`);
    // 15 of the 20 minutes on the axis are closed.
    await eventually(async () => expect(await share('i.received', 0.3, 0.7)).toBeGreaterThan(0));
    expect(await share('i.received', 0.8, 0.95)).toBe(0);
    // The grid has about 2% of the pixels.
    expect(await share('.at', 0.8, 0.95)).toBeGreaterThan(0.1);
    expect(await share('.at', 0.3, 0.7)).toBeLessThan(0.01);
  });

  it('the console plots 15 minutes per minute', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    await closedMinutes(page, (place) => ({ received: place === 14 ? 1 : place > 14 ? 7 : 0 }));
    await page.getByRole('button', { name: '15 min' }).click();
    const received = page.getByRole('listitem').filter({ hasText: 'closed minutes, last 15 min' });
    await eventually(async () => expect(await received.textContent()).toMatch(/^1\b/));
    await eventually(() => expect(page.url()).toContain('minutes=15'));
    expect(await page.getByText(/means of/).count()).toBe(0);
  });

  it('the console plots a single minute in a narrow plot', async () => {
    await using app = await ConsoleApplication.start();
    await app.receive({ id: 'evt_1' });
    const page = await app.open(browser(), '', { viewport: { width: 390, height: 844 } });
    await closedMinutes(page, (place) => ({ p95Ms: place === 30 ? 40 : null }));
    await page.reload();
    await page
      .getByRole('img', { name: /^Time from receipt to done: p95 at most 40 ms/ })
      .waitFor();
    const painted = () =>
      page.evaluate<number>(`(() => {
        const canvas = document.querySelectorAll('canvas')[3];
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const wanted = getComputedStyle(document.querySelector('i.p95Ms')).color.match(/\\d+/g);
        return Array.from({ length: data.length / 4 }, (_, at) => at * 4).filter((at) =>
          wanted.slice(0, 3).every((part, index) => data[at + index] === Number(part))).length;
      })()`);
    await eventually(async () => expect(await painted()).toBeGreaterThan(0));
  });

  it('IN-38 the console shows until when minutes are closed, and from when on they are complete', async () => {
    await using app = await ConsoleApplication.start();
    const page = await app.open(browser());
    let completeFrom = '2026-11-20T08:00:00.000Z';
    const none = { received: 0, done: 0, failed: 0, dead: 0, p50Ms: null, p95Ms: null };
    await changed(page, 'overview', (overview) => ({
      ...overview,
      now: '2026-11-20T08:02:10.000Z',
      activity: ['00', '01'].map((minute) => ({
        startsAt: `2026-11-20T08:${minute}:00.000Z`,
        ...none,
      })),
      completeFrom,
    }));
    for (const [from, text, figure] of [
      ['08:00', /^Closed minutes until [^.]*\. Later minutes are not counted yet\.$/, 'last hour'],
      [
        '08:01',
        /not counted yet\. Complete from .* 08:01:00 UTC: before that, only stored events among the 100,000 newest/,
        'last hour, incomplete',
      ],
    ] as const) {
      completeFrom = `2026-11-20T${from}:00.000Z`;
      await page.reload();
      const note = page.getByText('Closed minutes until');
      await note.waitFor();
      expect((await note.textContent())!.trim().replaceAll(/\s+/g, ' ')).toMatch(text);
      await page.getByText(`events in closed minutes, ${figure}`, { exact: true }).waitFor();
    }
  });
});
