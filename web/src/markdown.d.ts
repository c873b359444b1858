// SPDX-License-Identifier: MIT OR Apache-2.0
// A document of docs/, as text.
declare module "*.md?raw" {
  const text: string;
  export default text;
}
