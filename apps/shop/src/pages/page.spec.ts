import { describe, expect, it } from '@jest/globals';
import { markup } from './page.js';

describe('markup', () => {
  it('markup escapes values in elements and in attributes', () => {
    const evil = `"><img src=x onerror='alert(1)'>&amp;`;
    const { text } = markup`<p title="${evil}">${evil}</p>`;
    const safe = '&#34;&#62;&#60;img src=x onerror=&#39;alert(1)&#39;&#62;&#38;amp;';
    expect(text).toBe(`<p title="${safe}">${safe}</p>`);
  });

  it('markup does not escape HTML that markup has returned, or a list of such HTML', () => {
    const items = ['a', '<b>'].map((name) => markup`<li>${name}</li>`);
    expect(markup`<ul>${items}</ul>${markup`<hr>`}${7}`.text).toBe(
      '<ul><li>a</li><li>&#60;b&#62;</li></ul><hr>7',
    );
  });
});
