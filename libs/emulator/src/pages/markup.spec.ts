import { describe, expect, it } from '@jest/globals';
import { markup } from './markup.js';

describe('markup', () => {
  it('markup escapes text in content and in attributes', () => {
    const text = `<b onclick="x()">'&`;
    expect(markup`<p title="${text}">${text}</p>`.text).toBe(
      '<p title="&lt;b onclick=&quot;x()&quot;&gt;&#39;&amp;">' +
        '&lt;b onclick=&quot;x()&quot;&gt;&#39;&amp;</p>',
    );
  });

  it('markup inserts other markup and lists of markup without escaping, and inserts nothing for undefined', () => {
    expect(markup`<ul>${[1, 2].map((n) => markup`<li>${n}</li>`)}${undefined}</ul>`.text).toBe(
      '<ul><li>1</li><li>2</li></ul>',
    );
  });
});
