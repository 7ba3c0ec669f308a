/// <reference lib="dom" />
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/**
 * The serious and critical violations that axe-core finds on a page: the rule, the element and what is wrong with it. The
 * rules are those of WCAG 2.1 level A and AA and axe-core's best practices.
 *
 * @param within CSS selector of the part to check. Default: the whole page.
 */
export async function seriousViolations(page: Page, within?: string): Promise<string[]> {
  // DevTools evaluates the script, so a page's content security policy does not block it.
  await page.evaluate(axe.source);
  return page.evaluate(async (within) => {
    const loaded = (globalThis as unknown as { axe: typeof axe }).axe;
    const { violations } = await loaded.run(within ?? document, { resultTypes: ['violations'] });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${String(target)}: ${failureSummary}`),
      );
  }, within);
}

/** Both widths and both color schemes in which pages are checked. */
const APPEARANCES = [
  { width: 1280, height: 900, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
] as const;

/**
 * The {@link seriousViolations} of a page at the width of a desktop in the light color scheme, and of a phone in the dark
 * one. The page keeps the last appearance.
 */
export async function seriousViolationsEverywhere(page: Page, within?: string): Promise<string[]> {
  const found: string[] = [];
  for (const { width, height, colorScheme } of APPEARANCES) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    const violations = await seriousViolations(page, within);
    found.push(...violations.map((violation) => `${width} px, ${colorScheme}: ${violation}`));
  }
  return found;
}
