import { IsIn, Matches } from 'class-validator';
import { randomInt } from 'node:crypto';
import { Body, Controller, Get, HttpStatus, Post, Redirect, UseGuards } from '@nestjs/common';
import { formatAmount } from '../amount.js';
import { OrdersService } from '../orders/orders.service.js';
import { markup, PageHeaders, renderPage } from '../pages/page.js';
import type { Html } from '../pages/page.js';
import { SameOriginGuard } from '../pages/same-origin.guard.js';
import { PRODUCTS } from './products.js';
import type { Product } from './products.js';

/** Body of `POST /buy`: the form of a product. */
export class BuyProductDto {
  /** `id` of the product. */
  @IsIn(PRODUCTS.map(({ id }) => id), {
    message: 'product must be the id of a product of the shop',
  })
  product!: string;

  /** The idempotency key in the form. If the browser sends a form several times, the shop creates only one order. */
  @Matches(/^[0-9a-z]{12}$/, {
    message: 'idempotencyKey must be the key of the form; reload the page',
  })
  idempotencyKey!: string;
}

/** Digits and lower-case letters, except 0, 1, i, l and o, which look alike. */
const KEY_CHARACTERS = '23456789abcdefghjkmnpqrstuvwxyz';
const KEY_LENGTH = 12;

/** The product catalogue, `GET /`, and its forms, `POST /buy`. */
@Controller()
export class CatalogueController {
  constructor(private readonly orders: OrdersService) {}

  @Get()
  @PageHeaders()
  show(): string {
    const key = newIdempotencyKey();
    return renderPage({
      title: 'The Corner Shop',
      path: '/',
      name: 'catalogue',
      main: markup`<h1>What would you like?</h1>
        <ul class="catalogue">
          ${PRODUCTS.map((product) => productItem(product, key))}
        </ul>`,
    });
  }

  /**
   * Creates an order, and redirects to the page of the order. The idempotency key is part of the reference, so a form
   * that is sent twice creates one order, even if two instances of the shop receive it. Each time the page is loaded,
   * its forms have new keys.
   */
  @Post('buy')
  @UseGuards(SameOriginGuard)
  @Redirect('/', HttpStatus.SEE_OTHER)
  async buy(@Body() { product, idempotencyKey }: BuyProductDto): Promise<{ url: string }> {
    const { id, price } = PRODUCTS.find(({ id }) => id === product)!;
    const reference = `${id}-${idempotencyKey}`;
    await this.orders.create({ reference, amount: price });
    return { url: `/orders/${reference}` };
  }
}

function newIdempotencyKey(): string {
  const characters = Array.from(
    { length: KEY_LENGTH },
    () => KEY_CHARACTERS[randomInt(KEY_CHARACTERS.length)],
  );
  return characters.join('');
}

function productItem({ id, name, description, price }: Product, key: string): Html {
  return markup`<li class="product">
    <img src="/assets/${id}.svg" alt="" width="160" height="120" />
    <h2>${name}</h2>
    <p class="description">${description}</p>
    <form method="post" action="/buy">
      <input type="hidden" name="product" value="${id}" />
      <input type="hidden" name="idempotencyKey" value="${key}" />
      <span class="price">${formatAmount(price)}</span>
      <button aria-label="Buy ${name}">Buy</button>
    </form>
  </li> `;
}
