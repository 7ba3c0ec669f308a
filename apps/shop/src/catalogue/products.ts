export interface Product {
  /**
   * The id of the product, which is also the prefix of the references of the product's orders, and the name of the
   * picture.
   */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly price: number;
}

/** The products, in the order in which the page shows them. */
export const PRODUCTS: readonly Product[] = [
  { id: 'tea', name: 'Kericho tea', description: 'Loose black tea, 250 g', price: 350 },
  { id: 'coffee', name: 'Nyeri coffee', description: 'Whole beans, 250 g', price: 420.5 },
  { id: 'mandazi', name: 'Mandazi', description: 'Six, fried this morning', price: 99.99 },
  { id: 'sugar', name: 'Cane sugar', description: 'Brown, 1 kg', price: 180 },
  { id: 'milk', name: 'Fresh milk', description: 'A bottle, 500 ml', price: 65.1 },
  { id: 'bread', name: 'Bread', description: 'A loaf, baked here', price: 120 },
];
