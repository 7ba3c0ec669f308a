import { Controller, Get } from '@nestjs/common';
import { Books } from '../books/books.js';
import type { LedgerEntry } from './ledger.entry.js';

/** `GET /ledger`. */
@Controller('ledger')
export class LedgerController {
  constructor(private readonly books: Books) {}

  @Get()
  entries(): Promise<LedgerEntry[]> {
    return this.books.entries();
  }
}
