import { randomInt } from 'node:crypto';
import { Body, Controller, Get, HttpStatus, Post, Redirect, UseGuards } from '@nestjs/common';
import { Orders } from '../orders/orders.service.js';
import { markup } from '../pages/markup.js';
import { OwnPagesGuard } from '../pages/own-pages.guard.js';
import { PageHeaders, renderPage } from '../pages/page.js';
import type { Product } from './products.js';
import { PRODUCTS } from './products.js';
import { Purchase } from './purchase.dto.js';

/** Without letters that are taken for digits. */
const LETTERS = '23456789abcdefghjkmnpqrstuvwxyz';
const TICKET_LENGTH = 12;

/** `GET /`, the shelf, and `POST /buy`, its forms. */
@Controller()
export class ShelfController {
  constructor(private readonly orders: Orders) {}

  @Get()
  @PageHeaders()
  show(): string {
    const ticket = newTicket();
    return renderPage({
      title: 'The Corner Shop',
      at: '/',
      script: 'shelf.js',
      main: markup`<h1>What may it be?</h1>
        <ul class="shelf">
          ${PRODUCTS.map((product) => item(product, ticket))}
        </ul>`,
    });
  }

  /**
   * Places an order and leads to its page. The reference is made of the ticket of the shelf: a form that is sent twice
   * orders once, whichever instance of the shop it reaches, and a shelf that is loaded anew orders anew.
   */
  @Post('buy')
  @UseGuards(OwnPagesGuard)
  @Redirect('/', HttpStatus.SEE_OTHER)
  async buy(@Body() { product, ticket }: Purchase): Promise<{ url: string }> {
    const { id, price } = PRODUCTS.find(({ id }) => id === product)!;
    const { reference } = await this.orders.place({ reference: `${id}-${ticket}`, amount: price });
    return { url: `/o/${reference}` };
  }
}

function item({ id, name, about, price }: Product, ticket: string) {
  return markup`<li class="product">
    <img src="/assets/${id}.svg" alt="" width="160" height="120" />
    <h2>${name}</h2>
    <p class="about">${about}</p>
    <form method="post" action="/buy">
      <input type="hidden" name="product" value="${id}" />
      <input type="hidden" name="ticket" value="${ticket}" />
      <span class="price">${price.toFixed(2)}</span>
      <button aria-label="Buy ${name}">Buy</button>
    </form>
  </li> `;
}

function newTicket(): string {
  return Array.from({ length: TICKET_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}
