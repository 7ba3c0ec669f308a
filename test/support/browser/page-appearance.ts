/// <reference lib="dom" />
import type { Locator, Page } from 'playwright-core';

/**
 * The texts of a page whose contrast with their background is less than 4.5 to 1, the minimum of WCAG level AA. Disabled
 * elements are ignored, as WCAG allows.
 */
export function weakTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })!;
    /** Any colour of CSS as red, green, blue (0 to 255) and alpha. */
    const parsed = (colour: string): number[] => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = (colour: number[]): number => {
      const [red, green, blue] = colour.map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
    };
    const behind = (element: Element | null): number[] => {
      for (let at = element; at !== null; at = at.parentElement) {
        const colour = parsed(getComputedStyle(at).backgroundColor);
        if (colour[3] === 255) return colour;
      }
      return [255, 255, 255, 255];
    };
    const hasText = (element: Element): boolean =>
      [...element.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent!.trim() !== '',
      );
    return [...document.querySelectorAll('body *')]
      .filter((element) => hasText(element) && element.checkVisibility())
      .filter((element) => element.closest(':disabled, .unseen, script, style, noscript') === null)
      .flatMap((element) => {
        const pair = [parsed(getComputedStyle(element).color), behind(element)].map(luminance);
        const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        return ratio >= 4.5 ? [] : [`${ratio.toFixed(2)} ${element.textContent.trim()}`];
      });
  });
}

/** The {@link weakTexts} of a page on which the pointer is over all buttons and links at once. */
export async function weakTextsUnderPointer(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send('DOM.enable');
  await session.send('CSS.enable');
  const { nodeId } = (await session.send('DOM.getDocument')).root;
  const selector = 'button, a';
  const { nodeIds } = await session.send('DOM.querySelectorAll', { nodeId, selector });
  for (const id of nodeIds) {
    await session.send('CSS.forcePseudoState', { nodeId: id, forcedPseudoClasses: ['hover'] });
  }
  const weak = await weakTexts(page);
  await session.detach();
  return weak;
}

/** The brightness of the page's background, from 0 to 1. */
export function brightness(page: Page): Promise<number> {
  return page.evaluate(() => {
    const parts = getComputedStyle(document.body).backgroundColor.match(/\d+/g) ?? [];
    return parts.slice(0, 3).reduce((sum, part) => sum + Number(part) / 765, 0);
  });
}

/** The width of the page's content, in pixels. */
export function widthOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth);
}

/** The texts of the visible table cells whose content is wider than the cell, so that it covers the next cell. */
export function cutCells(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('main :is(td, th)')]
      .filter((cell) => cell.checkVisibility() && cell.scrollWidth > cell.clientWidth)
      .map((cell) => cell.textContent.trim()),
  );
}

export function isFocused(target: Locator): Promise<boolean> {
  return target.evaluate((element) => element === document.activeElement);
}

export function outlineOf(target: Locator): Promise<string> {
  return target.evaluate((element) => getComputedStyle(element).outlineStyle);
}

export function clipboardOf(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}

/** Whether the first canvas has the colour of the text of an element. */
export function isPaintedIn(page: Page, selector: string): Promise<boolean> {
  return page.evaluate((selector) => {
    const canvas = document.querySelector('canvas')!;
    const { width, height } = canvas;
    const pixels = canvas.getContext('2d')!.getImageData(0, 0, width, height).data;
    const { color } = getComputedStyle(document.querySelector(selector)!);
    const [red, green, blue] = (color.match(/\d+/g) ?? []).map(Number);
    for (let at = 0; at < pixels.length; at += 4) {
      if (pixels[at] === red && pixels[at + 1] === green && pixels[at + 2] === blue) return true;
    }
    return false;
  }, selector);
}

/** Makes the page hidden, as in a background tab, or visible again. */
export async function setHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
}
