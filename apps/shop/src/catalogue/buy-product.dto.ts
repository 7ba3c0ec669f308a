import { IsIn, Matches } from 'class-validator';
import { PRODUCTS } from './products.js';

/** Body of `POST /buy`: the form of a product. */
export class BuyProductDto {
  /** `id` of the product. */
  @IsIn(PRODUCTS.map(({ id }) => id), {
    message: 'product must be the id of a product of the shop',
  })
  product!: string;

  /** The key that the page was rendered with. The same key orders once, however often the form is sent. */
  @Matches(/^[0-9a-z]{12}$/, {
    message: 'idempotencyKey must be the key of the form; reload the page',
  })
  idempotencyKey!: string;
}
