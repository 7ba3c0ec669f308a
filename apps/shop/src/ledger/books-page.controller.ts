import { Controller, Get, Header, Query, Sse } from '@nestjs/common';
import type { MessageEvent } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { Books } from '../books/books.js';
import { EventStreams } from '../live/event.streams.js';
import { LiveBooks } from '../live/live.books.js';
import { markup } from '../pages/markup.js';
import { PageHeaders, renderPage } from '../pages/page.js';
import { LedgerQuery } from './ledger-query.dto.js';
import type { LedgerPage } from './ledger.entry.js';

/** `GET /books`, the ledger's page, and what it asks for. */
@Controller('books')
export class BooksPageController {
  constructor(
    private readonly books: Books,
    private readonly live: LiveBooks,
    private readonly streams: EventStreams,
  ) {}

  @Get()
  @PageHeaders()
  show(): string {
    return renderPage({
      title: 'Ledger',
      at: '/books',
      script: 'books.js',
      main: markup`<h1>Ledger</h1>
        <div id="books"><p>Opening the books …</p></div>
        <noscript
          ><p>
            Without JavaScript this page can't be filled. <a href="/ledger">The ledger as JSON</a>
          </p></noscript
        >`,
    });
  }

  @Get('entries')
  @Header('cache-control', 'no-store')
  entries(@Query() { before, limit }: LedgerQuery): Promise<LedgerPage> {
    return this.books.page(limit, before);
  }

  /** What the ledger comes to, and again whenever something is booked: events named `state`. */
  @Sse('events')
  follow(): Observable<MessageEvent> {
    return this.streams.open(this.live.ledger());
  }
}
