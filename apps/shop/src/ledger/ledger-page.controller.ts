import { Controller, Get } from '@nestjs/common';
import { markup, PageHeaders, renderPage } from '../pages/page.js';

/** The page of the ledger, `GET /ledger`. The script of the page reads the API. */
@Controller('ledger')
export class LedgerPageController {
  @Get()
  @PageHeaders()
  show(): string {
    return renderPage({
      title: 'Ledger',
      path: '/ledger',
      name: 'ledger',
      main: markup`<h1>Ledger</h1>
        <div id="ledger"><p>Loading the ledger …</p></div>
        <noscript
          ><p>
            This page needs JavaScript to show the ledger.
            <a href="/api/ledger">The ledger as JSON</a>
          </p></noscript
        >`,
    });
  }
}
