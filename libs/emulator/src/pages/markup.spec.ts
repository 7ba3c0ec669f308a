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

  it('a template of markup inserts other markup, also a list of it, without escaping it, and inserts nothing for undefined', () => {
    expect(markup`<ul>${[1, 2].map((n) => markup`<li>${n}</li>`)}${undefined}</ul>`.text).toBe(
      '<ul><li>1</li><li>2</li></ul>',
    );
  });
});
