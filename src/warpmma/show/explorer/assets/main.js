// The page, started.
import { data, formats, instructions, instructionNamed } from "./catalogue.js";
import { sumSteps } from "./reference.js";

globalThis.warpmma = { data, formats, instructions, instructionNamed, sumSteps };
