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
