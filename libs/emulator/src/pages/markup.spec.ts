import { describe, expect, it } from '@jest/globals';
import { markup } from './markup.js';

describe('markup', () => {
  it('shows text as text, in content and in attributes', () => {
    const text = `<b onclick="x()">'&`;
    expect(markup`<p title="${text}">${text}</p>`.text).toBe(
      '<p title="&lt;b onclick=&quot;x()&quot;&gt;&#39;&amp;">' +
        '&lt;b onclick=&quot;x()&quot;&gt;&#39;&amp;</p>',
    );
  });

  it('takes markup as it is, one or several, and shows nothing for undefined', () => {
    expect(markup`<ul>${[1, 2].map((n) => markup`<li>${n}</li>`)}${undefined}</ul>`.text).toBe(
      '<ul><li>1</li><li>2</li></ul>',
    );
  });
});
